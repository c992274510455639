#include "server/conditions/window/window_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "proto/base/stale_marker.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kStale = StaleMarker();

// Layouts that live as long as the test.
class WindowBuilderTest : public testing::Test {
 protected:
  explicit WindowBuilderTest(WindowLimits limits = {}) : builder_(SignalNames(), limits) {}

  struct Owned {
    std::deque<storage::Metric> metrics;
    std::deque<std::string> texts;
    std::deque<storage::LabelSet> labels;
    storage::SeriesSource source;
    std::deque<storage::Series> series;
    storage::Layout layout;
  };

  storage::Layout* Layout(const std::string& job, std::optional<uint32_t> task,
                          const std::string& host, const std::vector<std::string>& metrics,
                          uint32_t attempt = 0, const std::string& chip = "") {
    Owned& owned = owned_.emplace_back();
    owned.source = {job, task, host, 0};
    for (const std::string& name : metrics) {
      owned.metrics.push_back({name, storage::MetricType::kGauge, "1", ""});
      storage::LabelSet& labels = owned.labels.emplace_back();
      if (!chip.empty()) {
        labels.labels.push_back({"chip", owned.texts.emplace_back(chip)});
      }
      owned.series.push_back({++series_, 1, 1, &owned.metrics.back(), &owned.source, &labels});
      owned.layout.series.push_back(&owned.series.back());
    }
    owned.layout.id = ++layouts_;
    owned.layout.attempt = attempt;
    owned.layout.has_steps = task.has_value();
    return &owned.layout;
  }

  void Add(const storage::Layout* layout, int64_t second, int64_t step,
           const std::vector<double>& values) {
    const std::vector<int64_t> times = {second * kSecond};
    const std::vector<int64_t> steps = {step};
    const std::string bytes = storage::EncodeRowsEntry(
        *layout, {times, layout->has_steps ? steps : std::vector<int64_t>(), values});
    const storage::RowsEntry entry = *storage::DecodeRowsEntry(bytes);
    builder_.AddRows(*layout, {&entry, 1});
  }

  void AddPhase(int64_t second, const std::string& kind) {
    storage::Event event;
    event.source.job = "a";
    event.source.task = 0;
    event.kind = kind;
    event.time_ns = second * kSecond;
    builder_.AddEvent(event);
  }

  void EndTask(uint32_t task, int64_t second, const std::string& kind) {
    storage::Event event;
    event.source.job = "a";
    event.source.task = task;
    event.kind = kind;
    event.time_ns = second * kSecond;
    builder_.AddEvent(event);
  }

  // A copy of what a detector would see.
  JobWindow Window(const std::string& job, int64_t now_seconds) {
    JobWindow copy;
    builder_.Visit(job, now_seconds * kSecond, &agents_, [&](JobWindow& window) { copy = window; });
    return copy;
  }

  std::deque<Owned> owned_;
  storage::SeriesId series_ = 0;
  storage::LayoutId layouts_ = 0;
  ingest::AgentLedger agents_;
  WindowBuilder builder_;
};

TEST_F(WindowBuilderTest, TasksChipsAndHostsComeTogether) {
  const auto* one = Layout("a", 1, "h1", {"loss", "whatever"});
  const auto* zero = Layout("a", 0, "h0", {"loss"});
  const auto* chips = Layout("hosts", std::nullopt, "h1", {"chip_power_watts"}, 0, "3");
  const auto* host = Layout("hosts", std::nullopt, "h1", {"host_memory_available_bytes"});
  const auto* other = Layout("hosts", std::nullopt, "h9", {"host_memory_available_bytes"});
  Add(one, 10, 1, {2.0, 1.0});
  Add(zero, 11, 1, {3.0});
  Add(chips, 12, 0, {300});
  Add(host, 12, 0, {1e9});
  Add(other, 12, 0, {1e9});
  const JobWindow window = Window("a", 20);
  ASSERT_EQ(window.tasks.size(), 2u);
  EXPECT_EQ(window.tasks[0].task, 0u);
  EXPECT_EQ(Newest(window.tasks[1].tracks, Signal::kLoss), 2.0);
  ASSERT_EQ(window.chips.size(), 1u);
  EXPECT_EQ(window.chips[0].chip, "3");
  EXPECT_EQ(Newest(window.chips[0].tracks, Signal::kChipPower), 300);
  ASSERT_EQ(window.hosts.size(), 2u);
  EXPECT_EQ(Newest(window.hosts[1].tracks, Signal::kHostMemoryAvailable), 1e9);
  EXPECT_THAT(builder_.Jobs(), ElementsAre("a")) << "hosts are no job";
  // The window only borrowed the chips and hosts, so the next one has them too.
  EXPECT_EQ(Window("a", 21).chips.size(), 1u);
}

TEST_F(WindowBuilderTest, NonFiniteValuesAreKeptAndStaleOnesAreNone) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  Add(layout, 1, 1, {1.0});
  Add(layout, 2, 2, {kStale});
  Add(layout, 3, 3, {kNaN});
  const JobWindow window = Window("a", 4);
  const Track* loss = FindTrack(window.tasks[0].tracks, Signal::kLoss);
  ASSERT_EQ(loss->points.size(), 2u);
  EXPECT_TRUE(std::isnan(loss->points[1].value));
  EXPECT_EQ(window.tasks[0].last_step, 3);
}

TEST_F(WindowBuilderTest, LateRowsDoNotMoveTheNewestStepBack) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  Add(layout, 10, 10, {1});
  Add(layout, 11, 11, {1});
  Add(layout, 5, 5, {5});
  const JobWindow window = Window("a", 12);
  EXPECT_EQ(window.tasks[0].last_step, 11);
  EXPECT_EQ(window.tasks[0].last_step_time_ns, 11 * kSecond);
  EXPECT_EQ(FindTrack(window.tasks[0].tracks, Signal::kLoss)->points.front().value, 5);
}

TEST_F(WindowBuilderTest, ARewindWithinAnAttemptMovesTheStepBack) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  for (int64_t i = 1; i <= 10; ++i) Add(layout, i, i, {1});
  Add(layout, 20, 5, {1});
  const JobWindow window = Window("a", 21);
  EXPECT_EQ(window.tasks[0].last_step, 5);
  EXPECT_EQ(window.tasks[0].last_step_time_ns, 20 * kSecond);
  EXPECT_EQ(FindTrack(window.tasks[0].tracks, Signal::kLoss)->points.size(), 5u);
}

TEST_F(WindowBuilderTest, OnlyTheNewestAttemptCounts) {
  Add(Layout("a", 0, "h", {"loss"}, 0), 1, 1, {1});
  Add(Layout("a", 1, "h", {"loss"}, 0), 1, 1, {1});
  Add(Layout("a", 0, "h", {"loss"}, 1), 2, 1, {2});
  Add(Layout("a", 1, "h", {"loss"}, 0), 3, 2, {1});
  const JobWindow window = Window("a", 4);
  EXPECT_EQ(window.attempt, 1u);
  ASSERT_EQ(window.tasks.size(), 1u);
  EXPECT_EQ(FindTrack(window.tasks[0].tracks, Signal::kLoss)->points.size(), 1u);
  EXPECT_EQ(builder_.stats().tracks, 1u);
}

TEST_F(WindowBuilderTest, ALayoutWithOneMoreMetricGoesOnWithTheSameTracks) {
  Add(Layout("a", 0, "h", {"loss"}), 1, 1, {1});
  Add(Layout("a", 0, "h", {"accuracy", "loss", "grad_norm"}), 2, 2, {0.5, 2, 3});
  Add(Layout("a", 0, "h", {"loss"}), 3, 3, {4});
  const JobWindow window = Window("a", 4);
  EXPECT_EQ(FindTrack(window.tasks[0].tracks, Signal::kLoss)->points.size(), 3u);
  EXPECT_EQ(Newest(window.tasks[0].tracks, Signal::kGradNorm), 3);
}

TEST_F(WindowBuilderTest, EventsAreSortedAndTellOfTheEnd) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  Add(layout, 10, 1, {1});
  storage::Event event;
  event.source.job = "a";
  for (const auto& [kind, second] : std::vector<std::pair<std::string, int64_t>>{
           {"checkpoint_saved", 9}, {"attempt_started", 5}, {"condition_raised", 9}}) {
    event.kind = kind;
    event.time_ns = second * kSecond;
    builder_.AddEvent(event);
    builder_.AddEvent(event);
  }
  JobWindow window = Window("a", 11);
  ASSERT_EQ(window.events.size(), 2u) << "neither our own nor repeats";
  EXPECT_EQ(window.events[0].kind, "attempt_started");
  EXPECT_EQ(window.attempt_started_ns, 5 * kSecond);
  EXPECT_FALSE(window.ended);
  event.kind = "ended";
  event.time_ns = 12 * kSecond;
  builder_.AddEvent(event);
  EXPECT_TRUE(Window("a", 13).ended);
  Add(layout, 90, 2, {1});
  EXPECT_FALSE(Window("a", 91).ended) << "it went on";
}

TEST_F(WindowBuilderTest, ATaskMayEndBeforeItsJob) {
  Add(Layout("a", 0, "h", {"loss"}), 10, 1, {1});
  const auto* other = Layout("a", 1, "h", {"loss"});
  Add(other, 10, 1, {1});
  storage::Event event;
  event.source.job = "a";
  event.source.task = 0;
  event.kind = "ended";
  event.time_ns = 11 * kSecond;
  builder_.AddEvent(event);
  Add(other, 12, 2, {1});
  const JobWindow window = Window("a", 13);
  EXPECT_TRUE(window.tasks[0].ended);
  EXPECT_FALSE(window.tasks[1].ended);
  EXPECT_FALSE(window.ended);
  EXPECT_TRUE(Window("a", 100).ended) << "the other went without a word";
}

TEST_F(WindowBuilderTest, WhereAnAgentReportsASilentTaskHasNotEnded) {
  Add(Layout("a", 0, "h", {"loss"}), 10, 1, {1});
  Add(Layout("a", 1, "g", {"loss"}), 10, 1, {1});
  ingest::AgentLedger::Stream stream = agents_.Open("g's", 10 * kSecond, std::nullopt);
  agents_.Serves(stream, "g");
  EndTask(0, 11, "ended");
  EXPECT_FALSE(Window("a", 100).ended) << "it may hang, and its agent would have told its end";
  EndTask(1, 101, "ended");
  EXPECT_TRUE(Window("a", 102).ended);
}

TEST_F(WindowBuilderTest, ATaskThatStartsAgainHasNotEnded) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  Add(layout, 10, 1, {1});
  EndTask(0, 11, "exited");
  EXPECT_TRUE(Window("a", 12).tasks[0].ended);
  EXPECT_EQ(Window("a", 12).exits.size(), 1u);
  EndTask(0, 13, "attempt_started");
  EXPECT_FALSE(Window("a", 14).tasks[0].ended);
  EXPECT_TRUE(Window("a", 14).exits.empty());
  EndTask(0, 11, "exited");  // Read once more from the store.
  EXPECT_FALSE(Window("a", 14).tasks[0].ended);
}

TEST_F(WindowBuilderTest, ATaskThatBeganPreparesItsFirstRowForAnHour) {
  constexpr int64_t kHour = 3600;
  Add(Layout("a", 0, "h", {"loss"}), 10, 1, {1});
  EndTask(1, 10, "attempt_started");
  EndTask(0, 11, "ended");
  EXPECT_FALSE(Window("a", 10 + kHour).ended) << "task 1 may compile";
  EXPECT_TRUE(Window("a", 10 + kHour + 1).ended) << "its end was lost";
}

TEST_F(WindowBuilderTest, AStepAfterItsEndShowsThatATaskGoesOn) {
  Add(Layout("a", 0, "h", {"loss"}), 10, 1, {1});
  EndTask(0, 11, "ended");
  Add(Layout("a", 0, "h", {"loss"}), 12, 2, {1});
  EXPECT_TRUE(Window("a", 13).tasks[0].ended) << "within the second in which rows are late";
  Add(Layout("a", 0, "h", {"loss"}), 13, 3, {1});
  EXPECT_FALSE(Window("a", 14).tasks[0].ended);
}

TEST_F(WindowBuilderTest, EndsOfManyTasksLeaveRoomForOtherEvents) {
  constexpr uint32_t kTasks = 3 * WindowBuilder::kMaxEvents;
  for (uint32_t task = 0; task < kTasks; ++task) {
    Add(Layout("a", task, "h", {"loss"}), 10, 1, {1});
  }
  EndTask(0, 10, "compile_started");
  for (uint32_t task = 0; task < kTasks; ++task) EndTask(task, 11, "ended");
  const JobWindow window = Window("a", 12);
  EXPECT_TRUE(window.ended);
  ASSERT_EQ(window.events.size(), 1u);
  EXPECT_EQ(window.events[0].kind, "compile_started");
}

TEST_F(WindowBuilderTest, ForgettingGivesTheMemoryBack) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  for (int64_t i = 0; i < 1000; ++i) Add(layout, i + 1, i, {1});
  EXPECT_GT(builder_.stats().bytes, 1000 * sizeof(Point));
  builder_.Forget("a");
  EXPECT_EQ(builder_.stats().bytes, 0u);
  EXPECT_EQ(builder_.stats().tracks, 0u);
  Add(layout, 2000, 2000, {1});
  EXPECT_EQ(Window("a", 2001).tasks.size(), 1u);
}

TEST_F(WindowBuilderTest, OldValuesOfHostsGo) {
  Add(Layout("a", 0, "h", {"loss"}), 10, 1, {1});
  const auto* host = Layout("hosts", std::nullopt, "h", {"host_memory_available_bytes"});
  const int64_t hours = 3600;
  for (int64_t i = 0; i < 10; ++i) Add(host, i * hours + 1, 0, {1});
  EXPECT_EQ(FindTrack(Window("a", 9 * hours + 2).hosts[0].tracks, Signal::kHostMemoryAvailable)
                ->points.size(),
            6u);
  builder_.ForgetHostsBefore(20 * hours * kSecond);
  EXPECT_TRUE(Window("a", 10 * hours).hosts[0].tracks.empty());
}

TEST_F(WindowBuilderTest, WhatIsImportedMakesNoWindow) {
  builder_.SetOldest(100 * kSecond);
  const auto* layout = Layout("a", 0, "h", {"loss"});
  Add(layout, 99, 1, {1});
  EXPECT_THAT(builder_.Jobs(), testing::IsEmpty());
  Add(layout, 100, 2, {1});
  Add(layout, 99, 1, {1});
  EXPECT_EQ(FindTrack(Window("a", 101).tasks[0].tracks, Signal::kLoss)->points.size(), 2u);
}

class SmallWindowBuilderTest : public WindowBuilderTest {
 protected:
  static constexpr uint64_t kJobBytes = 1000 * WindowBuilder::kMinPoints * sizeof(Point);
  SmallWindowBuilderTest()
      : WindowBuilderTest({.points = 256,
                           .job_bytes = kJobBytes,
                           .total_bytes = 2 * kJobBytes,
                           .host_window = absl::Hours(6),
                           .max_jobs = 3}) {}

  std::vector<const storage::Layout*> hosts_;
};

TEST_F(SmallWindowBuilderTest, TenThousandTasksAreBoundedAndAllWatchedForSteps) {
  std::vector<const storage::Layout*> layouts;
  for (uint32_t task = 0; task < 10'000; ++task) {
    layouts.push_back(Layout("a", task, "h" + std::to_string(task / 8), {"loss"}));
  }
  for (int64_t i = 1; i <= 100; ++i) {
    for (const auto* layout : layouts) Add(layout, i, i, {1});
  }
  const JobWindow window = Window("a", 101);
  ASSERT_EQ(window.tasks.size(), 10'000u);
  for (const TaskWindow& task : window.tasks) ASSERT_EQ(task.last_step, 100);
  EXPECT_EQ(builder_.stats().tracks, 1000u);
  EXPECT_EQ(builder_.stats().tracks_left_out, 9'000u);
  // Room for one more point each, and eight times as much for the first task.
  EXPECT_LE(builder_.stats().bytes, kJobBytes + 1000 * sizeof(Point) + 256 * sizeof(Point));
  EXPECT_GT(FindTrack(window.tasks[0].tracks, Signal::kLoss)->points.size(), 90u);
}

// A job of two tasks, beside so many series that none keeps more than the least number of points.
TEST_F(SmallWindowBuilderTest, ThePaceOfAnOldJobIsThatOfItsRowsThoughMostPointsAreGone) {
  for (uint32_t task = 0; task < 1000; ++task) Add(Layout("full", task, "h", {"loss"}), 1, 1, {1});
  const auto* zero = Layout("a", 0, "h", {"loss"});
  const auto* one = Layout("a", 1, "h", {"loss"});
  constexpr int64_t kSteps = 2 * 3600 / 2;
  for (int64_t step = 1; step <= kSteps; ++step) {
    Add(zero, 2 * step, step, {1});
    Add(one, 2 * step, step, {1});
    if (step % 5 == 0) Window("a", 2 * step);
  }
  const JobWindow window = Window("a", 2 * kSteps + 60);
  const std::vector<Point>& points = FindTrack(window.tasks[1].tracks, Signal::kLoss)->points;
  ASSERT_LE(points.size(), 64u);
  ASSERT_GT(points[points.size() / 4].time_ns - points.front().time_ns, 1200 * kSecond)
      << "the window is thinned out";
  EXPECT_EQ(ProgressInterval(window), 2);
}

TEST_F(WindowBuilderTest, ThePaceDoesNotCountWhatAnEventExplains) {
  const auto* layout = Layout("a", 0, "h", {"loss"});
  int64_t second = 0;
  for (int64_t step = 1; step <= 200; ++step) {
    if (step % 20 == 0) {
      AddPhase(second, "checkpoint_started");
      second += 60;
      Add(layout, second + 2, step, {1});  // Its event comes a little later.
      Window("a", second + 3);
      AddPhase(second, "checkpoint_saved");
    } else {
      Add(layout, second + 2, step, {1});
    }
    Window("a", second += 2);
  }
  EXPECT_EQ(ProgressInterval(Window("a", second + 60)), 2);
}

TEST_F(SmallWindowBuilderTest, ManySeriesShareWhatFewHad) {
  const auto* first = Layout("a", 5, "h", {"loss"});
  for (int64_t i = 1; i <= 256; ++i) Add(first, i, i, {1});
  for (uint32_t task = 6; task < 906; ++task) {
    Add(Layout("a", task, "h", {"loss"}), 300, 300, {1});
  }
  Add(Layout("a", 1, "h", {"loss"}), 300, 300, {1});
  const JobWindow window = Window("a", 301);
  EXPECT_LE(FindTrack(window.tasks[1].tracks, Signal::kLoss)->points.size(), 36u);
}

TEST_F(SmallWindowBuilderTest, TheWholeIsNeverMoreThanItsBytes) {
  std::vector<const storage::Layout*> layouts;
  int64_t time = 0;
  const auto add_to_all = [&](int rows) {
    for (int row = 0; row < rows; ++row) {
      ++time;
      for (const auto* layout : layouts) {
        Add(layout, time, time, {1, 2});
        ASSERT_LE(builder_.stats().bytes, 2 * kJobBytes);
      }
    }
  };
  for (const char* job : {"a", "b", "c"}) {
    for (uint32_t task = 0; task < 40; ++task) {
      layouts.push_back(Layout(job, task, job + std::to_string(task), {"loss", "grad_norm"}));
    }
  }
  for (int host = 0; host < 40; ++host) {
    layouts.push_back(Layout("hosts", std::nullopt, "a" + std::to_string(host),
                             {"host_memory_available_bytes", "host_memory_total_bytes"}));
  }
  add_to_all(400);
  EXPECT_GT(builder_.stats().bytes, kJobBytes) << "what there is is used";
  // Series that come late find room, though nobody looks at the windows.
  for (uint32_t task = 40; task < 300; ++task) {
    layouts.push_back(Layout("b", task, "h", {"loss", "grad_norm"}));
  }
  add_to_all(100);
  for (const char* job : {"a", "b", "c"}) {
    for (const TaskWindow& task : Window(job, time).tasks) {
      const Track* loss = FindTrack(task.tracks, Signal::kLoss);
      ASSERT_GT(loss->points.size(), WindowBuilder::kMinPoints / 2);
      ASSERT_EQ(loss->points.back().time_ns, time * kSecond);
    }
  }
  EXPECT_LE(builder_.stats().bytes, 2 * kJobBytes);
}

TEST_F(SmallWindowBuilderTest, MoreHostsThanFitAreWithinItToo) {
  for (int64_t i = 1; i <= 100; ++i) {
    for (uint32_t host = 0; host < 3000; ++host) {
      const std::string name = "h" + std::to_string(host);
      if (i == 1) {
        hosts_.push_back(Layout("hosts", std::nullopt, name, {"host_memory_available_bytes"}));
      }
      Add(hosts_[host], i, 0, {1});
      ASSERT_LE(builder_.stats().bytes, 2 * kJobBytes);
    }
  }
  EXPECT_GT(builder_.stats().tracks_left_out, 0u);
  EXPECT_GT(builder_.stats().bytes, kJobBytes);
}

TEST_F(SmallWindowBuilderTest, MoreJobsThanMayBeAreLeftOut) {
  for (const char* job : {"a", "b", "c", "d"}) Add(Layout(job, 0, "h", {"loss"}), 1, 1, {1});
  EXPECT_THAT(builder_.Jobs(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(builder_.stats().jobs_left_out, 1u);
}

TEST(AgentLedgerTest, TellsWhoSpeaksForAHost) {
  ingest::AgentLedger ledger;
  EXPECT_FALSE(ledger.Find("h", 0).has_value());
  auto stream = ledger.Open("agent-1", 5, 0.25);
  ledger.Serves(stream, "h");
  stream.Heard(7);
  stream.Lost(10, 6);
  stream.Lost(0, 20);
  auto facts = ledger.Find("h", 0);
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(facts->connected);
  EXPECT_EQ(facts->last_heard_ns, 7);
  EXPECT_EQ(facts->clock_offset_seconds, 0.25);
  EXPECT_EQ(facts->lost_rows, 11u);
  EXPECT_EQ(ledger.Find("h", 10)->lost_rows, 1u);
  stream = ingest::AgentLedger::Stream();
  EXPECT_FALSE(ledger.Find("h", 0)->connected);
}

}  // namespace
}  // namespace tacho::server::conditions
