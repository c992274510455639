// What the store reports about a job besides its samples: attempts, incarnations, chips, metrics,
// events.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class JobEntitiesTest : public StoreFixture {
 protected:
  JobEntitiesTest() {
    options_.job_idle = absl::Hours(1);
    Reopen();
  }

  // Appends one row, all values 1, to a layout of these series.
  void Record(uint32_t attempt, std::optional<uint32_t> task, const std::string& host,
              std::vector<SeriesDefinition> series, int64_t step) {
    LayoutDefinition definition;
    definition.source = {"job", task, attempt, host};
    definition.has_steps = true;
    definition.series = std::move(series);
    const std::vector<double> values(definition.series.size(), 1);
    ASSERT_TRUE(Append(Register(definition), {Now() + step}, {step}, values).ok());
  }
  static SeriesDefinition Gauge(std::string name, Labels labels = {}) {
    return {{std::move(name), MetricType::kGauge, "1", ""}, std::move(labels)};
  }
  int64_t Now() const { return absl::ToUnixNanos(now_); }
  // Everything is sealed, and the job out of memory.
  void LeaveMemory() {
    ASSERT_TRUE(store_->Seal().ok());
    now_ += absl::Hours(2);
    ASSERT_TRUE(store_->UnloadIdleJobs().ok());
    ASSERT_EQ(store_->Stats().jobs_in_memory, 0u);
  }
};

TEST_F(JobEntitiesTest, CountsTheSeriesOfEachIncarnationOnce) {
  Record(0, 0, "a", {Gauge("loss")}, 1);
  Record(0, 0, "a", {Gauge("loss"), Gauge("lr")}, 2);
  Record(1, 0, "b", {Gauge("loss")}, 1);
  Record(1, std::nullopt, "b", {Gauge("cpu")}, 1);
  for (int round = 0; round < 2; ++round) {
    const auto entities = store_->Entities("job");
    ASSERT_TRUE(entities.ok()) << entities.status();
    std::vector<std::string> told;
    for (const auto& one : entities->incarnations) {
      told.push_back(std::to_string(one.attempt) + (one.task ? " task " : " no task ") + one.host +
                     " " + std::to_string(one.series));
    }
    EXPECT_THAT(told, ElementsAre("0 task a 2", "1 no task b 1", "1 task b 1"));
    LeaveMemory();
  }
  EXPECT_EQ(store_->Entities("other").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobEntitiesTest, ListsChipsInTheOrderOfTheirNumbers) {
  std::vector<SeriesDefinition> series;
  for (const char* chip : {"10", "2", "0"}) series.push_back(Gauge("duty", {{"chip", chip}}));
  series.push_back(Gauge("temperature", {{"chip", "2"}, {"sensor", "x"}}));
  series.push_back(Gauge("loss"));
  Record(0, 3, "b", series, 1);
  Record(0, 1, "a", {Gauge("duty", {{"chip", "7"}})}, 1);
  const auto entities = store_->Entities("job");
  ASSERT_TRUE(entities.ok());
  std::vector<std::pair<std::string, uint64_t>> told;
  for (const auto& chip : entities->chips) told.emplace_back(chip.host + chip.chip, chip.series);
  EXPECT_THAT(told, ElementsAre(Pair("a7", 1), Pair("b0", 1), Pair("b2", 2), Pair("b10", 1)));
  EXPECT_EQ(entities->chips[1].task, 3u);
}

TEST_F(JobEntitiesTest, TellsOfEachMetricHowManySeriesAndWhichLabels) {
  Record(0, 0, "a", {Gauge("duty", {{"chip", "0"}}), Gauge("duty", {{"kind", "x"}})}, 1);
  Record(0, 1, "a", {Gauge("duty", {{"chip", "0"}}), Gauge("alpha")}, 1);
  const auto metrics = store_->Metrics("job");
  ASSERT_TRUE(metrics.ok());
  ASSERT_EQ(metrics->size(), 2u);
  EXPECT_EQ((*metrics)[0].metric.name, "alpha");
  EXPECT_THAT((*metrics)[0].labels, IsEmpty());
  EXPECT_EQ((*metrics)[1].series, 3u);
  EXPECT_THAT((*metrics)[1].labels, ElementsAre("chip", "kind"));
}

TEST_F(JobEntitiesTest, OutlinesAJobAlikeInMemoryAndOutOfIt) {
  Record(0, 0, "b", {Gauge("loss"), Gauge("lr")}, 1);
  Record(0, 1, "a", {Gauge("loss")}, 1);
  Record(2, 1, "a", {Gauge("loss")}, 1);
  const auto set = [&](uint32_t attempt, std::map<std::string, std::string> values) {
    ASSERT_TRUE(Wait([&](AppendDone done) {
                  store_->AppendAttributes({}, {"job", attempt, values}, std::move(done));
                }).ok());
  };
  set(0, {{"model", "w"}, {"tag.old", "1"}});
  set(1, {{"tag.gone", "1"}});
  set(1, {{"tag.gone", ""}});
  set(3, {{"model", "x"}});
  for (const bool in_memory : {true, false}) {
    SCOPED_TRACE(in_memory);
    if (!in_memory) LeaveMemory();
    const auto outline = store_->Outline("job", /*hosts=*/true);
    ASSERT_TRUE(outline.ok()) << outline.status();
    EXPECT_EQ(outline->metrics, 2u);
    EXPECT_EQ(outline->attempt, 3u);
    EXPECT_THAT(outline->attributes, ElementsAre(Pair("model", "x")));
    EXPECT_THAT(outline->merged_attributes, ElementsAre(Pair("model", "x"), Pair("tag.old", "1")));
    EXPECT_THAT(outline->hosts, ElementsAre("a", "b"));
    EXPECT_THAT(store_->Outline("job", false)->hosts, IsEmpty());
    EXPECT_EQ(store_->Stats().jobs_in_memory, in_memory ? 1u : 0u) << "it stays where it is";
  }
  EXPECT_EQ(store_->Outline("other", false).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobEntitiesTest, TellsTheAttemptsAlone) {
  Record(0, 0, "a", {Gauge("loss")}, 5);
  Record(0, 0, "a", {Gauge("loss")}, 9);
  Record(4, 0, "a", {Gauge("loss")}, 7);
  for (int round = 0; round < 2; ++round) {
    const auto attempts = store_->Attempts("job");
    ASSERT_TRUE(attempts.ok());
    ASSERT_EQ(attempts->size(), 2u);
    EXPECT_EQ((*attempts)[0].extent.first_step, 5);
    EXPECT_EQ((*attempts)[0].extent.last_step, 9);
    EXPECT_EQ((*attempts)[1].attempt, 4u);
    LeaveMemory();
  }
  EXPECT_THAT(*store_->Attempts("other"), IsEmpty());
}

TEST_F(JobEntitiesTest, VisitsEventsFromEitherEnd) {
  const int64_t ends[] = {INT64_MIN, INT64_MAX};
  for (const int64_t time_ns :
       {int64_t{10}, int64_t{20}, int64_t{20}, int64_t{30}, ends[0], ends[1]}) {
    Event event;
    event.source.job = "job";
    event.time_ns = time_ns;
    event.kind = "k";
    ASSERT_TRUE(
        Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); }).ok());
  }
  Event other;
  other.source.job = "another job";
  other.kind = "k";
  ASSERT_TRUE(Wait([&](AppendDone done) { store_->AppendEvent({}, other, std::move(done)); }).ok());
  const auto visit = [&](int64_t begin_ns, int64_t end_ns, Store::EventOrder order, size_t most) {
    std::vector<int64_t> times;
    EXPECT_TRUE(store_
                    ->VisitEvents("job", begin_ns, end_ns, order,
                                  [&](Event event) {
                                    times.push_back(event.time_ns);
                                    return times.size() < most;
                                  })
                    .ok());
    return times;
  };
  using enum Store::EventOrder;
  EXPECT_THAT(visit(10, 30, kOldestFirst, 9), ElementsAre(10, 20, 20));
  EXPECT_THAT(visit(10, 30, kNewestFirst, 9), ElementsAre(20, 20, 10));
  EXPECT_THAT(visit(11, INT64_MAX, kNewestFirst, 9), ElementsAre(ends[1], 30, 20, 20));
  EXPECT_THAT(visit(INT64_MIN, 11, kNewestFirst, 9), ElementsAre(10, ends[0]));
  EXPECT_THAT(visit(INT64_MIN, INT64_MAX, kNewestFirst, 2), ElementsAre(ends[1], 30));
  EXPECT_THAT(visit(INT64_MIN, INT64_MAX, kOldestFirst, 1), ElementsAre(ends[0]));
}

TEST_F(JobEntitiesTest, ASummaryBoundsItsStepsWhereThatIsAskedFor) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  std::vector<int64_t> times, steps;
  std::vector<double> values;
  for (int64_t i = 0; i < 20; ++i) {
    times.push_back(Now() + i);
    steps.push_back(i == 5 ? kNoStep : i == 7 ? 1000 : i == 9 ? -3 : i);
    values.push_back(1);
  }
  ASSERT_TRUE(Append(layout, times, steps, values).ok());
  ASSERT_TRUE(store_->Seal().ok());
  for (const bool bound : {false, true}) {
    Want want = AnySummary();
    want.step_bounds = bound;
    Chunk chunk;
    const auto reader = store_->Read(Find("job", "loss"), {});
    ASSERT_TRUE(*reader->Next(want, &chunk));
    const SampleSummary& summary = chunk.summary();
    EXPECT_EQ(summary.count, 20u);
    EXPECT_EQ(summary.lowest_step, bound ? -3 : kNoStep);
    EXPECT_EQ(summary.highest_step, bound ? 1000 : kNoStep);
  }
}

}  // namespace
}  // namespace tacho::storage
