// What a subscription delivers and what the view shows that was opened with it: together
// everything, nothing twice, whatever becomes of the rows meanwhile.
#include "storage/change_feed.h"

#include <atomic>
#include <bit>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBase = 1'700'000'000 * kSecond;

// (task, metric, attempt, time, step, bits of the value) and how often it was seen.
using Key = std::tuple<uint32_t, std::string, uint32_t, int64_t, int64_t, uint64_t>;
using Seen = std::map<Key, int>;

void Include(const Series& series, uint32_t attempt, int64_t time_ns, int64_t step, double value,
             Seen* seen) {
  ++(*seen)[{series.source->task.value_or(0), series.metric->name, attempt, time_ns, step,
             std::bit_cast<uint64_t>(value)}];
}

void Include(const std::vector<Change>& changes, Seen* seen) {
  for (const Change& change : changes) {
    if (change.layout == nullptr) continue;
    for (size_t row = 0; row < change.rows.rows; ++row) {
      for (size_t column = 0; column < change.rows.columns; ++column) {
        const double value = change.rows.Value(row, column);
        if (IsStaleMarker(value)) continue;
        Include(*change.layout->series[column], change.layout->attempt, change.rows.Time(row),
                change.rows.Step(row), value, seen);
      }
    }
  }
}

class ChangeFeedTest : public StoreFixture {
 protected:
  std::unique_ptr<Subscription> Subscribe(const std::string& job,
                                          std::unique_ptr<JobView>* view = nullptr,
                                          uint64_t buffer_bytes = 64u << 20) {
    return store_->Subscribe({.job = job, .buffer_bytes = buffer_bytes, .on_change = nullptr},
                             view);
  }

  void IncludeAll(ReadView* view, const std::string& job, Seen* seen) {
    const auto series = store_->FindSeries({.job = job}, 10'000);
    ASSERT_TRUE(series.ok()) << series.status();
    SampleBlock block;
    for (const SeriesPtr& one : *series) {
      const auto reader = view->Read(one, {});
      for (;;) {
        const auto more = NextBlock(reader, &block);
        ASSERT_TRUE(more.ok()) << more.status();
        if (!*more) break;
        for (size_t i = 0; i < block.size(); ++i) {
          Include(*one, block.attempts[i], block.times[i], block.steps[i], block.values[i], seen);
        }
      }
    }
  }
};

TEST_F(ChangeFeedTest, TellsRowsAndEventsOfItsJobInTheOrderOfCommits) {
  const LayoutPtr mine = Register(Definition("a", {"loss", "lr"}));
  const LayoutPtr other = Register(Definition("b", {"loss"}));
  ASSERT_TRUE(Append(mine, {1}, {1}, {0.5, 0.1}).ok());
  const auto subscription = Subscribe("a");
  ASSERT_TRUE(Append(other, {2}, {1}, {7}).ok());
  ASSERT_TRUE(Append(mine, {2}, {2}, {0.25, StaleMarker()}).ok());
  Event event;
  event.source = {"a", 0, 0, "host-0"};
  event.kind = "checkpoint";
  event.time_ns = 3;
  ASSERT_TRUE(Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); }).ok());
  ASSERT_TRUE(Append(mine, {1}, {1}, {0.75, 0.2}).ok());  // Replaces the first.

  std::vector<Change> changes;
  ASSERT_TRUE(subscription->Take(&changes).ok());
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].layout, mine);
  EXPECT_EQ(changes[0].rows.Time(0), 2);
  EXPECT_EQ(changes[0].rows.Step(0), 2);
  EXPECT_EQ(changes[0].rows.Value(0, 0), 0.25);
  EXPECT_EQ(std::bit_cast<uint64_t>(changes[0].rows.Value(0, 1)), kStaleMarkerBits);
  ASSERT_NE(changes[1].event, nullptr);
  EXPECT_EQ(*changes[1].event, event);
  EXPECT_EQ(changes[2].rows.Value(0, 1), 0.2);
  ASSERT_TRUE(subscription->Take(&changes).ok());
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(ChangeFeedTest, TellsARepeatedMessageOnce) {
  const LayoutPtr layout = Register(Definition("a", {"loss"}));
  const auto subscription = Subscribe("a");
  const Origin origin = {"agent", 1, 1};
  ASSERT_TRUE(Append(layout, {1}, {1}, {0.5}, origin).ok());
  ASSERT_TRUE(Append(layout, {1}, {1}, {0.5}, origin).ok());
  std::vector<Change> changes;
  ASSERT_TRUE(subscription->Take(&changes).ok());
  EXPECT_EQ(changes.size(), 1u);
}

TEST_F(ChangeFeedTest, FollowsAJobThatComesUpLater) {
  std::unique_ptr<JobView> view;
  const auto subscription = Subscribe("later", &view);
  const auto events = view->Events(INT64_MIN, INT64_MAX);
  ASSERT_TRUE(events.ok());
  EXPECT_THAT(*events, IsEmpty());
  ASSERT_TRUE(Append(Register(Definition("later", {"loss"})), {1}, {1}, {0.5}).ok());
  std::vector<Change> changes;
  ASSERT_TRUE(subscription->Take(&changes).ok());
  EXPECT_EQ(changes.size(), 1u);
  Seen seen;
  IncludeAll(view.get(), "later", &seen);
  EXPECT_THAT(seen, IsEmpty());
}

TEST_F(ChangeFeedTest, SaysForGoodThatItHasFallenBehind) {
  const LayoutPtr layout = Register(Definition("a", {"loss"}));
  const auto subscription = Subscribe("a", nullptr, 1000);
  for (int64_t i = 0; i < 10; ++i) ASSERT_TRUE(Append(layout, {i}, {i}, {0.5}).ok());
  std::vector<Change> changes;
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsResourceExhausted(subscription->Take(&changes)));
    EXPECT_THAT(changes, IsEmpty());
  }
  // One change is taken, however large it is.
  const auto another = Subscribe("a", nullptr, 1);
  ASSERT_TRUE(Append(layout, {11}, {11}, {0.5}).ok());
  ASSERT_TRUE(another->Take(&changes).ok());
  EXPECT_EQ(changes.size(), 1u);
}

TEST_F(ChangeFeedTest, CallsWhoeverGotSomethingOnceACommit) {
  const LayoutPtr layout = Register(Definition("a", {"loss"}));
  std::atomic<int> calls = 0;
  auto subscription = store_->Subscribe(
      {.job = "a", .buffer_bytes = 1 << 20, .on_change = [&] { ++calls; }}, nullptr);
  ASSERT_TRUE(Append(layout, {1}, {1}, {0.5}).ok());
  // The committer calls after it has acknowledged: the next commit has to wait for that.
  ASSERT_TRUE(Append(Register(Definition("b", {"loss"})), {1}, {1}, {0.5}).ok());
  EXPECT_EQ(calls, 1);
  subscription.reset();
  ASSERT_TRUE(Append(layout, {2}, {2}, {0.5}).ok());
  ASSERT_TRUE(Append(layout, {3}, {3}, {0.5}).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(ChangeFeedTest, AJobViewStaysAsItIs) {
  const LayoutPtr layout = Register(Definition("a", {"loss", "lr"}));
  ASSERT_TRUE(Append(layout, {kBase, kBase + 1}, {1, 2}, {1, 2, 3, 4}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(Append(layout, {kBase + 2}, {3}, {5, 6}).ok());
  Event event;
  event.source = {"a", 0, 0, "host-0"};
  event.kind = "before";
  event.time_ns = 5;
  const auto append = [&] {
    return Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); });
  };
  ASSERT_TRUE(append().ok());
  const auto view = store_->OpenJobView("a");
  event.kind = "after";
  ASSERT_TRUE(append().ok());
  ASSERT_TRUE(Append(layout, {kBase + 3}, {4}, {7, 8}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  Seen seen;
  IncludeAll(view.get(), "a", &seen);
  EXPECT_EQ(seen.size(), 6u);
  const auto events = view->Events(INT64_MIN, INT64_MAX);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().kind, "before");
  EXPECT_EQ(events->front().source.job, "a");
  EXPECT_THAT(store_->OpenJobView("none")->Events(INT64_MIN, INT64_MAX),
              testing::Truly([](auto& e) { return e.ok() && e->empty(); }));
}

// Random batches of several tasks and attempts, with rows that come late; new layouts; sealing,
// merging and unloading; subscribers that join at any moment, while messages are on their way.
class ChangeFeedRandomTest : public ChangeFeedTest, public testing::WithParamInterface<uint32_t> {
 protected:
  ChangeFeedRandomTest() : random_(GetParam()) {
    options_.seal_rows = 32;
    options_.job_idle = absl::Nanoseconds(1);
    options_.merge_quiet = absl::ZeroDuration();
    Reopen();
  }
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }

  // Appends without waiting.
  void AppendSomething() {
    std::vector<std::string> metrics = {"loss", "lr", "grad_norm"};
    metrics.resize(1 + static_cast<size_t>(Below(3)));
    if (Below(20) == 0) metrics.push_back("extra_" + std::to_string(Below(5)));
    const LayoutPtr layout = Register(Definition("job", metrics, static_cast<uint32_t>(Below(3)),
                                                 static_cast<uint32_t>(Below(2))));
    const size_t rows = 1 + static_cast<size_t>(Below(6));
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    const int64_t late = Below(5) == 0 ? Below(100'000) * kSecond : 0;
    for (size_t row = 0; row < rows; ++row) {
      times.push_back(kBase + ++unique_ * kSecond - late);
      // Steps are unique, so that no row replaces another.
      steps.push_back(unique_);
      for (size_t column = 0; column < layout->series.size(); ++column) {
        values.push_back(Below(10) == 0 ? StaleMarker() : static_cast<double>(random_()));
      }
    }
    ++sent_;
    store_->AppendRows({}, layout, {times, steps, values}, [this](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++done_;
    });
  }
  void AwaitAll() {
    while (done_ < sent_) std::this_thread::yield();
  }

  std::mt19937 random_;
  int64_t unique_ = 0;
  int sent_ = 0;
  std::atomic<int> done_ = 0;
};

TEST_P(ChangeFeedRandomTest, HistoryAndChangesHaveEverySampleOnce) {
  struct Subscriber {
    std::unique_ptr<JobView> view;
    std::unique_ptr<Subscription> subscription;
    Seen seen;
    bool read = false;
  };
  std::vector<Subscriber> subscribers;
  for (int i = 0; i < 700; ++i) {
    AppendSomething();
    if (Below(100) == 0) {
      Subscriber& joined = subscribers.emplace_back();
      joined.subscription = Subscribe("job", &joined.view);
    }
    if (Below(150) == 0) {
      ASSERT_TRUE(store_->Seal().ok());
    }
    if (Below(200) == 0) {
      ASSERT_TRUE(store_->MergeFrames().ok());
    }
    if (Below(200) == 0) {
      AwaitAll();
      ASSERT_TRUE(store_->Seal().ok());
      now_ += absl::Hours(1);
      ASSERT_TRUE(store_->UnloadIdleJobs().ok());
    }
    if (subscribers.empty() || Below(20) != 0) continue;
    Subscriber& one = subscribers[static_cast<size_t>(Below(static_cast<int>(subscribers.size())))];
    std::vector<Change> changes;
    ASSERT_TRUE(one.subscription->Take(&changes).ok());
    Include(changes, &one.seen);
    if (Below(3) == 0 && !one.read) {
      one.read = true;
      IncludeAll(one.view.get(), "job", &one.seen);
    }
  }
  AwaitAll();
  Seen all;
  IncludeAll(store_->OpenJobView("job").get(), "job", &all);
  ASSERT_GT(all.size(), 2000u);
  ASSERT_GT(subscribers.size(), 2u);
  for (Subscriber& one : subscribers) {
    std::vector<Change> changes;
    ASSERT_TRUE(one.subscription->Take(&changes).ok());
    Include(changes, &one.seen);
    if (!one.read) IncludeAll(one.view.get(), "job", &one.seen);
    EXPECT_EQ(one.seen, all);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChangeFeedRandomTest, testing::Range(1u, 4u));

}  // namespace
}  // namespace tacho::storage
