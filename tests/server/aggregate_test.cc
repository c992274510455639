#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "server/aggregate/job_aggregates.h"
#include "server/aggregate/job_families.h"
#include "server/aggregate/quantile.h"
#include "tests/server/fake_store.h"

namespace tacho::server {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kStale = std::bit_cast<double>(storage::kStaleMarkerBits);
const absl::Time kNow = absl::FromUnixSeconds(1'000'000);
constexpr absl::Duration kStaleness = absl::Minutes(5);

class AggregateTest : public testing::Test {
 protected:
  storage::SeriesPtr Loss(uint32_t task, const std::string& job = "j") {
    return store_.AddSeries(job, MetricNamed("loss"), task, "h" + std::to_string(task));
  }
  void Row(std::vector<storage::SeriesPtr> series, std::vector<double> values,
           int64_t time_ns = 100, absl::Duration age = absl::ZeroDuration(), uint32_t attempt = 0,
           int64_t step = 7) {
    store_.AddLatestRow(std::move(series), attempt, time_ns, step, kNow - age, std::move(values));
  }
  std::vector<JobAggregate> Jobs() { return AggregateJobs(store_, kNow, kStaleness); }
  Summary OnlySummary() {
    const auto jobs = Jobs();
    EXPECT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].metrics.size(), 1u);
    return jobs[0].metrics[0].summary;
  }

  FakeStore store_;
};

TEST(Quantile, InterpolatesBetweenTheClosestRanks) {
  EXPECT_EQ(QuantileOfSorted({1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(QuantileOfSorted({1, 2, 3}, 0.5), 2);
  EXPECT_EQ(QuantileOfSorted({5}, 0.99), 5);
  EXPECT_EQ(QuantileOfSorted({1, 2}, 0), 1);
  EXPECT_EQ(QuantileOfSorted({1, 2}, 1), 2);
  EXPECT_EQ(QuantileOfSorted({-kInf, kInf, kInf}, 0.75), kInf);
  EXPECT_TRUE(std::isnan(QuantileOfSorted({}, 0.5)));
}

TEST_F(AggregateTest, SummarizesAMetricOverItsTasks) {
  for (uint32_t task = 0; task < 101; ++task) Row({Loss(task)}, {static_cast<double>(task)});
  const Summary summary = OnlySummary();
  EXPECT_EQ(summary.sum, 5050);
  EXPECT_EQ(summary.avg, 50);
  EXPECT_EQ(summary.min, 0);
  EXPECT_EQ(summary.max, 100);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p90, 90);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.count, 101u);
  EXPECT_EQ(Jobs()[0].tasks, 101u);
  EXPECT_EQ(Jobs()[0].hosts, 101u);
}

TEST_F(AggregateTest, OneDivergedTaskIsCountedAndHidesNothing) {
  Row({Loss(0)}, {1});
  Row({Loss(1)}, {kNan});
  Row({Loss(2)}, {-kInf});
  const Summary summary = OnlySummary();
  EXPECT_EQ(summary.avg, 1);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.count, 3u);
  EXPECT_EQ(summary.non_finite, 2u);
}

TEST_F(AggregateTest, IsNanAndNotZeroWhereNothingIsFinite) {
  Row({Loss(0)}, {kNan});
  const Summary summary = OnlySummary();
  EXPECT_TRUE(std::isnan(summary.sum));
  EXPECT_TRUE(std::isnan(summary.avg));
  EXPECT_TRUE(std::isnan(summary.max));
  EXPECT_TRUE(std::isnan(summary.p99));
  EXPECT_EQ(summary.non_finite, 1u);
}

TEST_F(AggregateTest, AveragesHugeValuesWithoutOverflow) {
  const double huge = std::numeric_limits<double>::max();
  Row({Loss(0)}, {huge});
  Row({Loss(1)}, {huge});
  EXPECT_EQ(OnlySummary().avg, huge);
  EXPECT_EQ(OnlySummary().sum, kInf);
}

TEST_F(AggregateTest, LeavesOutATaskThatIsSilentForLongerThanStaleness) {
  Row({Loss(0)}, {1}, 100, kStaleness);
  Row({Loss(1)}, {2}, 100, kStaleness + absl::Nanoseconds(1));
  EXPECT_EQ(OnlySummary().count, 1u);
  EXPECT_EQ(Jobs()[0].tasks, 1u);
}

TEST_F(AggregateTest, ASilentJobLingersWithoutTasksAndThenLeaves) {
  Row({Loss(0, "lingers")}, {1}, 1'500'000'000, kJobLinger, 3);
  Row({Loss(0, "gone")}, {1}, 100, kJobLinger + absl::Seconds(1));
  const auto jobs = Jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(*jobs[0].job, "lingers");
  EXPECT_EQ(jobs[0].tasks, 0u);
  EXPECT_TRUE(jobs[0].metrics.empty());
  EXPECT_EQ(jobs[0].attempt, 3u);
  EXPECT_EQ(jobs[0].last_time_ns, 1'500'000'000);
}

TEST_F(AggregateTest, ARestartedTaskCountsOnceWithItsNewestRow) {
  auto loss = Loss(0);
  Row({loss}, {5}, 200, absl::ZeroDuration(), /*attempt=*/1, /*step=*/3);
  Row({loss}, {9}, 100, absl::ZeroDuration(), /*attempt=*/0, /*step=*/8);
  EXPECT_EQ(OnlySummary().count, 1u);
  EXPECT_EQ(OnlySummary().max, 5);
  EXPECT_EQ(Jobs()[0].attempt, 1u);
  EXPECT_EQ(Jobs()[0].last_step_max, 3);
  EXPECT_EQ(Jobs()[0].tasks, 1u);
}

TEST_F(AggregateTest, AStaleMarkerIsNoValue) {
  auto accuracy = store_.AddSeries("j", MetricNamed("accuracy"), 0, "h0");
  Row({Loss(0), accuracy}, {1, kStale});
  EXPECT_EQ(OnlySummary().count, 1u) << "accuracy has no aggregate at all";
}

TEST_F(AggregateTest, TellsTheFastestAndTheSlowestTask) {
  Row({Loss(0)}, {1}, 100, absl::ZeroDuration(), 0, 1000);
  Row({Loss(1)}, {1}, 100, absl::ZeroDuration(), 0, 990);
  Row({Loss(2)}, {1}, 100, absl::ZeroDuration(), 0, storage::kNoStep);
  EXPECT_EQ(Jobs()[0].last_step_max, 1000);
  EXPECT_EQ(Jobs()[0].last_step_min, 990);
}

TEST_F(AggregateTest, KeepsJobsApartAndLeavesOutHistogramBuckets) {
  Row({Loss(0, "b")}, {1});
  Row({Loss(0, "a")}, {2});
  Row({store_.AddSeries("a", MetricNamed("h", storage::MetricType::kHistogram), 0, "h")}, {5});
  const auto jobs = Jobs();
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(*jobs[0].job, "a");
  ASSERT_EQ(jobs[0].metrics.size(), 1u);
  EXPECT_EQ(jobs[0].metrics[0].summary.sum, 2);
}

std::map<std::string, prometheus::MetricFamily> ByName(
    const std::vector<prometheus::MetricFamily>& families) {
  std::map<std::string, prometheus::MetricFamily> by_name;
  for (const auto& family : families) {
    EXPECT_TRUE(by_name.emplace(family.name, family).second) << family.name << " is torn apart";
  }
  return by_name;
}

TEST_F(AggregateTest, FamiliesHoldEveryJobsStats) {
  Row({Loss(0, "a")}, {2});
  Row({Loss(0, "b")}, {3});
  Row({store_.AddSeries("a", MetricNamed("examples", storage::MetricType::kCounter), 0, "h")}, {8});
  auto families = ByName(JobFamilies(Jobs(), 1000));
  EXPECT_EQ(families["tacho_job_loss"].metric.size(), 18u);
  EXPECT_EQ(families["tacho_job_loss"].type, prometheus::MetricType::Gauge);
  EXPECT_EQ(families["tacho_job_examples_total"].metric.size(), 3u);
  EXPECT_EQ(families["tacho_job_examples_total"].type, prometheus::MetricType::Counter);
  EXPECT_EQ(families["tacho_job_examples_total"].metric[0].counter.value, 8);
  EXPECT_EQ(families["tacho_job_tasks"].metric.size(), 2u);
  EXPECT_EQ(families["tacho_aggregate_series_left_out"].metric[0].gauge.value, 0);
  for (const auto& [name, family] : families) EXPECT_NE(family.help, "") << name;
}

TEST_F(AggregateTest, OutputIsBoundedAndTheRestCounted) {
  Row({Loss(0, "a")}, {2});
  Row({Loss(0, "b")}, {3});
  // 6 lines about each job, then 9 of each metric.
  auto families = ByName(JobFamilies(Jobs(), 12 + 9));
  EXPECT_EQ(families["tacho_job_loss"].metric.size(), 9u);
  EXPECT_EQ(families["tacho_aggregate_series_left_out"].metric[0].gauge.value, 9);
  families = ByName(JobFamilies(Jobs(), 0));
  EXPECT_EQ(families.size(), 1u);
  EXPECT_EQ(families["tacho_aggregate_series_left_out"].metric[0].gauge.value, 30);
}

TEST_F(AggregateTest, HelpOfAForeignMetricIsOneLine) {
  storage::Metric metric = MetricNamed("x");
  metric.help = "two\nlines \\ and a backslash";
  Row({store_.AddSeries("a", metric, 0, "h")}, {1});
  EXPECT_EQ(ByName(JobFamilies(Jobs(), 100))["tacho_job_x"].help,
            "two\\nlines \\\\ and a backslash");
}

}  // namespace
}  // namespace tacho::server
