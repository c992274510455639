#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>

#include "proto/base/quantile.h"
#include "proto/base/stale_marker.h"
#include "server/aggregate/page_writer.h"
#include "server/aggregate/parallel.h"
#include "server/aggregate/stats.h"
#include "tests/server/aggregate/aggregate_fixture.h"

namespace tacho::server::aggregate {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kStale = StaleMarker();
constexpr absl::Duration kStaleness = absl::Minutes(5);

using AggregateTest = AggregateFixture;

TEST(ParallelFor, CallsWithEveryNumberOnce) {
  for (const size_t count : {0, 1, 2, 1000}) {
    for (const size_t threads : {1, 2, 4}) {
      std::vector<std::atomic<int>> calls(count);
      ParallelFor(count, threads, [&calls](size_t i) { ++calls[i]; });
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
    }
  }
}

// Selecting must find what sorting finds, in whatever order quantiles are asked for.
TEST(Stats, QuantilesAreThoseOfTheSortedValues) {
  std::mt19937_64 random(1);
  std::vector<AggregateStat> stats;
  for (const char* name : {"p50", "p99", "p1", "p90", "p0", "p100", "p999", "p51"}) {
    stats.push_back(*ParseAggregateStat(name));
  }
  for (const size_t count : {1, 2, 3, 47, 48, 49, 50, 100, 101, 1000, 1023}) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(random() % 300);
    std::vector<double> sorted = values, found;
    std::sort(sorted.begin(), sorted.end());
    ComputeStats(values, stats, &found);
    for (size_t i = 0; i < stats.size(); ++i) {
      EXPECT_DOUBLE_EQ(found[i], QuantileOfSorted(sorted, stats[i].q)) << stats[i].name << count;
    }
  }
}

TEST_F(AggregateTest, SummarizesAMetricOverItsTasks) {
  for (uint32_t task = 0; task < 101; ++task) Row({Loss(task)}, {static_cast<double>(task)});
  auto* rule = AddRule("loss");
  for (const char* name :
       {"sum", "avg", "min", "max", "p50", "p90", "p99", "p5", "stddev", "count"}) {
    rule->add_functions(name);
  }
  EXPECT_EQ(Stat("sum"), 5050);
  EXPECT_EQ(Stat("avg"), 50);
  EXPECT_EQ(Stat("min"), 0);
  EXPECT_EQ(Stat("max"), 100);
  EXPECT_EQ(Stat("p50"), 50);
  EXPECT_EQ(Stat("p90"), 90);
  EXPECT_EQ(Stat("p99"), 99);
  EXPECT_EQ(Stat("p5"), 5);
  EXPECT_NEAR(Stat("stddev"), std::sqrt(850.0), 1e-9);
  EXPECT_EQ(Stat("count"), 101);
  EXPECT_EQ(Line("tacho_job_tasks{job=\"j\"}"), 101);
  EXPECT_EQ(Line("tacho_job_hosts{job=\"j\"}"), 101);
  EXPECT_EQ(Line("tacho_job_series{job=\"j\"}"), 101);
}

TEST_F(AggregateTest, OneDivergedTaskIsCountedAndHidesNothing) {
  Row({Loss(0)}, {1});
  Row({Loss(1)}, {kNan});
  Row({Loss(2)}, {-kInf});
  EXPECT_EQ(Stat("avg"), 1);
  EXPECT_EQ(Stat("min"), 1);
  EXPECT_EQ(Stat("count"), 3);
  EXPECT_EQ(Stat("non_finite"), 2);
}

TEST_F(AggregateTest, IsNanAndNotZeroWhereNothingIsFinite) {
  Row({Loss(0)}, {kNan});
  EXPECT_THAT(Page(), HasSubstr("stat=\"sum\"} NaN\n"));
  EXPECT_THAT(Page(), HasSubstr("stat=\"p99\"} NaN\n"));
  EXPECT_EQ(Stat("non_finite"), 1);
}

TEST_F(AggregateTest, AveragesHugeValuesWithoutOverflow) {
  const double huge = std::numeric_limits<double>::max();
  Row({Loss(0)}, {huge});
  Row({Loss(1)}, {huge});
  EXPECT_EQ(Stat("avg"), huge);
  EXPECT_EQ(Stat("sum"), kInf);
}

TEST_F(AggregateTest, ATaskThatIsSilentForLongerThanStalenessLeavesAndIsCounted) {
  Row({Loss(0)}, {1});
  Row({Loss(1)}, {2});
  EXPECT_EQ(Stat("count"), 2);
  now_ += kStaleness;
  Row({Loss(0)}, {1});
  EXPECT_EQ(Stat("count"), 2) << "just not for longer";
  EXPECT_EQ(Line("tacho_job_tasks_left_total{job=\"j\"}"), 0);
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Stat("count"), 1);
  EXPECT_EQ(Stat("max"), 1);
  EXPECT_EQ(Line("tacho_job_tasks{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_silent_tasks{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_tasks_left_total{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_series_left_total{job=\"j\"}"), 1);
  Row({Loss(0)}, {1});
  now_ += absl::Hours(1);
  Row({Loss(0)}, {1});
  EXPECT_EQ(Line("tacho_job_silent_tasks{job=\"j\"}"), 0) << "it is no longer waited for";
}

TEST_F(AggregateTest, ASilentJobLingersWithoutTasksAndThenLeaves) {
  Row({Loss(0, "lingers")}, {1}, 1'500'000'000, kJobLinger, 3);
  Row({Loss(0, "gone")}, {1}, 100, kJobLinger + absl::Seconds(1));
  const auto lines = Lines();
  EXPECT_THAT(lines, Contains(testing::Pair("tacho_job_tasks{job=\"lingers\"}", 0)));
  EXPECT_THAT(lines, Contains(testing::Pair("tacho_job_attempt{job=\"lingers\"}", 3)));
  EXPECT_THAT(lines, Contains(testing::Pair(
                         "tacho_job_last_seen_timestamp_seconds{job=\"lingers\"}", 1.5)));
  EXPECT_THAT(Page(), Not(HasSubstr("gone")));
  EXPECT_THAT(Page(), Not(HasSubstr("tacho_job_loss")));
}

TEST_F(AggregateTest, ARestartedTaskCountsOnceWithItsNewestRow) {
  auto loss = Loss(0);
  Row({loss}, {9}, 100, absl::ZeroDuration(), /*attempt=*/0, /*step=*/8);
  EXPECT_EQ(Stat("max"), 9);
  Row({loss}, {5}, 200, absl::ZeroDuration(), /*attempt=*/1, /*step=*/3);
  EXPECT_EQ(Stat("count"), 1);
  EXPECT_EQ(Stat("max"), 5);
  EXPECT_EQ(Line("tacho_job_attempt{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_last_step{job=\"j\",stat=\"max\"}"), 3);
  EXPECT_EQ(Line("tacho_job_tasks{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_series_left_total{job=\"j\"}"), 0) << "it goes on in another layout";
}

TEST_F(AggregateTest, AStaleMarkerIsNoValue) {
  Row({Loss(0), Series("j", "accuracy", 0, "h0")}, {1, kStale});
  EXPECT_EQ(Stat("count"), 1);
  EXPECT_THAT(Page(), Not(HasSubstr("accuracy"))) << "it has no aggregate at all";
}

TEST_F(AggregateTest, TasksWithAndWithoutAValueAreCountedTogether) {
  for (uint32_t task = 0; task < 6; ++task) {
    const auto step_time = Series("j", "step_time", task, "h" + std::to_string(task));
    Row({Loss(task), step_time}, {1.0 + task, task % 3 == 1 ? kStale : 2.0});
  }
  const auto lines = Lines();
  EXPECT_EQ(lines.at("tacho_job_loss{job=\"j\",stat=\"count\"}"), 6);
  EXPECT_EQ(lines.at("tacho_job_loss{job=\"j\",stat=\"sum\"}"), 21);
  EXPECT_EQ(lines.at("tacho_job_step_time{job=\"j\",stat=\"count\"}"), 4);
  EXPECT_EQ(lines.at("tacho_job_step_time{job=\"j\",stat=\"sum\"}"), 8);
  EXPECT_EQ(lines.at("tacho_job_series{job=\"j\"}"), 10);
}

TEST_F(AggregateTest, TellsTheFastestAndTheSlowestTask) {
  Row({Loss(0)}, {1}, 100, absl::ZeroDuration(), 0, 1000);
  Row({Loss(1)}, {1}, 100, absl::ZeroDuration(), 0, 990);
  Row({Loss(2)}, {1}, 100, absl::ZeroDuration(), 0, storage::kNoStep);
  EXPECT_EQ(Line("tacho_job_last_step{job=\"j\",stat=\"max\"}"), 1000);
  EXPECT_EQ(Line("tacho_job_last_step{job=\"j\",stat=\"min\"}"), 990);
}

TEST_F(AggregateTest, FamiliesAreInOnePieceWithEveryJobsLines) {
  Row({Loss(0, "a")}, {2});
  Row({Loss(0, "b")}, {3});
  Row({Series("a", "examples", 0, "h", storage::MetricType::kCounter)}, {8});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("# HELP tacho_job_loss Metric loss of a job.\n"
                              "# TYPE tacho_job_loss gauge\n"
                              "tacho_job_loss{job=\"a\",stat=\"sum\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("tacho_job_loss{job=\"a\",stat=\"non_finite\"} 0\n"
                              "tacho_job_loss{job=\"b\",stat=\"sum\"} 3\n"));
  EXPECT_THAT(page,
              HasSubstr("# TYPE tacho_job_examples_total counter\n"
                        "tacho_job_examples_total{job=\"a\",stat=\"sum\",metric=\"examples\"} 8\n"
                        "tacho_job_examples_total{job=\"a\",stat=\"min\",metric=\"examples\"} 8\n"
                        "tacho_job_examples_total{job=\"a\",stat=\"max\",metric=\"examples\"} 8\n"
                        "# HELP"));
}

TEST_F(AggregateTest, HelpOfAForeignMetricIsOneLine) {
  storage::Metric metric = MetricNamed("x");
  metric.help = "two\nlines \\ and a backslash";
  Row({store_.AddSeries("a", metric, 0, "h")}, {1});
  EXPECT_THAT(Page(), HasSubstr("# HELP tacho_job_x two\\nlines \\\\ and a backslash\n"));
}

TEST_F(AggregateTest, WhatMayNotBeSeenIsLeftOut) {
  Row({Loss(0, "mine")}, {1});
  Row({Loss(0, "theirs")}, {1});
  hidden_job_ = "theirs";
  EXPECT_THAT(Page(), Not(HasSubstr("theirs")));
  EXPECT_THAT(Page(), HasSubstr("mine"));
}

TEST(FairShares, GiveEverybodyTheSameAtMost) {
  EXPECT_THAT(FairShares({100, 3, 50}, 1000), ElementsAre(100, 3, 50));
  EXPECT_THAT(FairShares({100, 3, 50}, 63), ElementsAre(30, 3, 30));
  EXPECT_THAT(FairShares({5, 5}, 0), ElementsAre(0, 0));
  EXPECT_THAT(FairShares({}, 10), ElementsAre());
}

TEST_F(AggregateTest, ALargeJobCannotPushOutOthers) {
  for (int i = 0; i < 50; ++i) {
    Row({Series("a-large", "m" + std::to_string(i), 0, "h")}, {1});
  }
  Row({Loss(0, "b-small")}, {3});
  max_series_ = 20 + 45;  // 10 lines about each job, then 9 of a metric.
  const auto lines = Lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const auto& line) { return line.first.find("tacho_job_m") == 0; }),
            36);
  EXPECT_THAT(lines, Contains(Key("tacho_job_loss{job=\"b-small\",stat=\"avg\"}")));
  EXPECT_EQ(lines.at("tacho_aggregate_series_left_out"), 46 * 9);
  EXPECT_EQ(lines.at("tacho_job_aggregates_left_out{job=\"a-large\"}"), 46 * 9);
}

TEST_F(AggregateTest, OfNoLinesThereAreNone) {
  Row({Loss(0, "a")}, {2});
  max_series_ = 0;
  const auto lines = Lines();
  EXPECT_EQ(lines.at("tacho_aggregate_series_left_out"), 19);
  EXPECT_THAT(Page(), Not(HasSubstr("job=\"a\"")));
}

TEST_F(AggregateTest, WhatJobsLeaveIsForgottenWithThem) {
  Row({Loss(0, "a")}, {2});
  Row({Loss(0, "b")}, {2});
  Page();
  store_.RemoveLatestRows("a");
  EXPECT_THAT(Page(), Not(HasSubstr("job=\"a\"")));
  EXPECT_THAT(Page(), HasSubstr("job=\"b\""));
}

}  // namespace
}  // namespace tacho::server::aggregate
