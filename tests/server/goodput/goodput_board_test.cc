// Ledgers of live jobs, and the metrics page's families of them.
#include "server/goodput/goodput_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "server/conditions/window/signal_names.h"
#include "server/goodput/goodput_families.h"
#include "server/metrics/metric_table.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::goodput {
namespace {

using ::testing::ElementsAre;

class GoodputBoardTest : public query::QueryStoreFixture {
 protected:
  void AppendSteps(const std::string& job, int64_t first_s, int64_t count) {
    const auto layout = Register(job, 0, 0, {"step_time_seconds"});
    std::vector<int64_t> times, steps;
    for (int64_t i = 0; i < count; ++i) {
      times.push_back(query::kTestBase + (first_s + i) * query::kTestSecond);
      steps.push_back(first_s + i);
    }
    Append(layout, times, steps, std::vector<double>(static_cast<size_t>(count), 1.0));
  }

  GoodputBoardOptions Options() {
    GoodputBoardOptions options;
    options.store = store_.get();
    options.now = [this] { return now_; };
    options.background = false;
    return options;
  }

  static std::vector<std::string> Jobs(const GoodputBoard& board) {
    std::vector<std::string> jobs;
    for (const auto& job : board.Newest()) jobs.push_back(job->job);
    return jobs;
  }

  // Returns the counter of the only job.
  static double CounterOf(const GoodputBoard& board, const std::string& bucket) {
    for (const auto& family : GoodputFamilies(board.Newest(), board.Stats(), 100)) {
      if (family.name != "tacho_job_goodput_seconds_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label.at(1).value == bucket) return metric.counter.value;
      }
    }
    return -1;
  }

  static std::vector<std::string> HostLines(const GoodputBoard& board, size_t max_lines) {
    std::vector<std::string> lines;
    for (const auto& family : GoodputFamilies(board.Newest(), board.Stats(), max_lines)) {
      for (const auto& metric : family.metric) {
        if (family.name == "tacho_job_host_info") {
          lines.push_back(metric.label.at(0).value + " " + metric.label.at(1).value);
        } else if (family.name == "tacho_job_host_lines_left_out" && metric.gauge.value > 0) {
          lines.push_back("left out " + std::to_string(static_cast<int>(metric.gauge.value)));
        }
      }
    }
    return lines;
  }

  void SetNow(int64_t seconds) {
    now_ = absl::FromUnixNanos(query::kTestBase + seconds * query::kTestSecond);
  }

  absl::Time now_ = absl::FromUnixNanos(query::kTestBase);
};

TEST_F(GoodputBoardTest, ShowsLiveJobsAndForgetsSilentOnes) {
  AppendSteps("a", 0, 100);
  AppendSteps("b", 3000, 100);
  GoodputBoard board(Options());
  SetNow(3100);
  board.Refresh();
  EXPECT_THAT(Jobs(board), ElementsAre("a", "b"));
  SetNow(99 + 3601);
  board.Refresh();
  EXPECT_THAT(Jobs(board), ElementsAre("b"));
}

TEST_F(GoodputBoardTest, AClockThatWasSetBackPutsNoLedgerOff) {
  AppendSteps("a", 0, 100);
  GoodputBoard board(Options());
  SetNow(100);
  board.Refresh();
  EXPECT_EQ(board.Stats().made, 1u);
  SetNow(100 - 1000);
  board.Refresh();
  EXPECT_EQ(board.Stats().made, 2u);
}

TEST_F(GoodputBoardTest, RenewsWhatHasNewRowsAndInTimeWhatCameLate) {
  AppendSteps("a", 0, 100);
  GoodputBoard board(Options());
  SetNow(100);
  board.Refresh();
  AppendSteps("a", 100, 20);
  SetNow(105);
  board.Refresh();  // Not yet.
  EXPECT_EQ(board.Newest()[0]->total.productive_steps, 99u);
  SetNow(121);
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total.productive_steps, 119u);
  const auto late = Register("a", 0, 0, {"data_wait_seconds"});
  Append(late, {query::kTestBase + 50 * query::kTestSecond}, {50}, {0.5});
  SetNow(140);
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total[GoodputBucket::kDataWait], 0);
  SetNow(121 + 120);
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total[GoodputBucket::kDataWait], query::kTestSecond / 2);
}

TEST_F(GoodputBoardTest, ConfiguredNamesCountAlsoAfterAReload) {
  AppendSteps("a", 0, 100);
  const auto layout = Register("a", 0, 0, {"waiting_for_input"});
  Append(layout, {query::kTestBase + 50 * query::kTestSecond}, {50}, {0.5});
  SetNow(100);
  GoodputBoardOptions options = Options();
  GoodputBoard board(options);
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total[GoodputBucket::kDataWait], 0);
  config::v1::Collector config;
  config.mutable_conditions()->mutable_signals()->add_data_wait("waiting_for_input");
  const auto use = board.Prepare(config);
  ASSERT_TRUE(use.ok());
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total[GoodputBucket::kDataWait], 0) << "not in force yet";
  (*use)();
  board.Refresh();
  EXPECT_EQ(board.Newest()[0]->total[GoodputBucket::kDataWait], query::kTestSecond / 2);
  options.signals = std::make_shared<const conditions::SignalNames>(
      conditions::ConfiguredNames(config.conditions().signals()));
  GoodputBoard other(options);
  other.Refresh();
  EXPECT_EQ(other.Newest()[0]->total[GoodputBucket::kDataWait], query::kTestSecond / 2);
}

TEST_F(GoodputBoardTest, CountersDoNotFallWhenProgressTurnsOutToBeWasted) {
  AppendSteps("a", 0, 100);
  GoodputBoard board(Options());
  SetNow(100);
  board.Refresh();
  EXPECT_EQ(CounterOf(board, "productive_step"), 99);
  // The next attempt begins again at step 40: 59 seconds are lost.
  const auto again = Register("a", 0, 1, {"step_time_seconds"});
  const auto repeat = [&](int64_t first_s, int64_t step, int64_t count) {
    std::vector<int64_t> times, steps;
    for (int64_t i = 0; i < count; ++i) {
      times.push_back(query::kTestBase + (first_s + i) * query::kTestSecond);
      steps.push_back(step + i);
    }
    Append(again, times, steps, std::vector<double>(static_cast<size_t>(count), 1.0));
  };
  repeat(110, 40, 11);
  SetNow(121);
  board.Refresh();
  const int64_t lost = board.Newest()[0]->total[GoodputBucket::kWasted];
  EXPECT_GT(lost, 50 * query::kTestSecond);
  EXPECT_LT(board.Newest()[0]->total[GoodputBucket::kProductiveStep], 60 * query::kTestSecond);
  EXPECT_EQ(CounterOf(board, "productive_step"), 99);
  EXPECT_EQ(CounterOf(board, "wasted"), 10);
  repeat(121, 51, 100);
  SetNow(222);
  for (const bool restarted : {false, true}) {
    GoodputBoard other(Options());
    GoodputBoard& shown = restarted ? other : board;
    shown.Refresh();
    EXPECT_EQ(CounterOf(shown, "productive_step"), 99 + 51) << "steps 100 to 150";
    EXPECT_EQ(CounterOf(shown, "wasted"), 59);
    EXPECT_EQ(shown.Newest()[0]->total[GoodputBucket::kWasted], lost);
  }
}

TEST_F(GoodputBoardTest, HostsAreThoseOfTheNewestAttemptAndAllOfAJobOrNone) {
  const auto on = [&](const std::string& job, uint32_t task, uint32_t attempt,
                      const std::string& host) {
    storage::LayoutDefinition definition;
    definition.source = {job, task, attempt, host};
    definition.has_steps = true;
    definition.series = {{{"loss", storage::MetricType::kGauge, "1", ""}, {}}};
    const auto layout = store_->RegisterLayout(definition);
    ASSERT_TRUE(layout.ok());
    const int64_t from = 10 * attempt;
    Append(layout->layout, {query::kTestBase + (from + 1) * query::kTestSecond}, {1}, {0.5});
    Append(layout->layout, {query::kTestBase + (from + 2) * query::kTestSecond}, {2}, {0.5});
  };
  on("a", 0, 0, "h1");
  on("a", 1, 0, "h2");
  on("a", 0, 1, "h2");
  on("a", 1, 1, "h3");
  for (uint32_t task = 0; task < 3; ++task) on("b", task, 0, "g" + std::to_string(task));
  GoodputBoard board(Options());
  SetNow(20);
  board.Refresh();
  EXPECT_THAT(HostLines(board, 5), ElementsAre("a h2", "a h3", "b g0", "b g1", "b g2"));
  EXPECT_THAT(HostLines(board, 4), ElementsAre("a h2", "a h3", "left out 3"));
  EXPECT_THAT(HostLines(board, 0), ElementsAre("left out 5"));
  SetNow(20 + 3700);
  board.Refresh();
  EXPECT_THAT(HostLines(board, 5), ElementsAre()) << "they leave with the job";
}

TEST_F(GoodputBoardTest, ANewBoardGoesOnWhereAnotherEnded) {
  AppendSteps("a", 0, 100);
  SetNow(100);
  GoodputBoard before(Options());
  before.Refresh();
  GoodputBoard after(Options());  // The collector was restarted.
  after.Refresh();
  EXPECT_EQ(after.Newest()[0]->total.ns, before.Newest()[0]->total.ns);
}

TEST_F(GoodputBoardTest, TheNewestJobsAreShownIfThereAreTooMany) {
  for (int i = 0; i < 5; ++i) AppendSteps("job" + std::to_string(i), i * 10, 10);
  GoodputBoardOptions options = Options();
  options.max_jobs = 2;
  GoodputBoard board(options);
  SetNow(60);
  board.Refresh();
  EXPECT_THAT(Jobs(board), ElementsAre("job3", "job4"));
  EXPECT_EQ(board.Stats().jobs_left_out, 3u);
}

TEST_F(GoodputBoardTest, AJobThatTellsNothingIsNotShown) {
  storage::LayoutDefinition definition;
  definition.source = {"hosts", std::nullopt, 0, "host-0"};
  definition.series = {
      {{"host_memory_available_bytes", storage::MetricType::kGauge, "By", ""}, {}}};
  const auto layout = store_->RegisterLayout(definition);
  ASSERT_TRUE(layout.ok());
  absl::Notification durable;
  const std::vector<int64_t> times = {query::kTestBase};
  const std::vector<double> values = {1};
  store_->AppendRows({}, layout->layout, {times, {}, values},
                     [&](const absl::Status&) { durable.Notify(); });
  durable.WaitForNotification();
  GoodputBoard board(Options());
  SetNow(10);
  board.Refresh();
  EXPECT_THAT(Jobs(board), ElementsAre());
}

TEST_F(GoodputBoardTest, TheThreadMakesThemAndStops) {
  AppendSteps("a", 0, 100);
  SetNow(100);
  GoodputBoardOptions options = Options();
  options.background = true;
  GoodputBoard board(options);
  while (board.Newest().empty()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(board.Stats().made, 1u);
}

TEST_F(GoodputBoardTest, FamiliesAreThoseOfTheTableAndBucketsSumToTheWallTime) {
  AppendSteps("a", 0, 100);
  SetNow(100);
  GoodputBoard board(Options());
  board.Refresh();
  std::map<std::string, std::vector<double>> values;
  size_t of_the_job = 0;
  for (const auto& family : GoodputFamilies(board.Newest(), board.Stats(), 100)) {
    for (const auto& metric : family.metric) {
      if (family.type == prometheus::MetricType::Summary) {
        for (const auto& quantile : metric.summary.quantile) {
          values[family.name].push_back(quantile.value);
          ++of_the_job;
        }
        continue;
      }
      const bool counter = family.type == prometheus::MetricType::Counter;
      values[family.name].push_back(counter ? metric.counter.value : metric.gauge.value);
      of_the_job += metric.label.empty() ? 0 : 1;
    }
  }
  EXPECT_LE(of_the_job, 23u);
  double sum = 0;
  for (const double seconds : values["tacho_job_goodput_seconds_total"]) sum += seconds;
  EXPECT_THAT(values["tacho_job_wall_seconds_total"], ElementsAre(sum));
  EXPECT_EQ(sum, 99);
  EXPECT_THAT(values["tacho_job_goodput_ratio"], ElementsAre(1));
  EXPECT_THAT(values["tacho_job_step_time_seconds"], ElementsAre(1, 1, 1));
  EXPECT_THAT(values["tacho_job_info"], ElementsAre(1));
  EXPECT_THAT(values["tacho_job_host_info"], ElementsAre(1));
  EXPECT_FALSE(values.contains("tacho_job_mfu_ratio"));  // Nothing to compute it from.
  for (const metrics::MetricInfo& info : metrics::kGoodputMetrics) {
    if (info.when.empty()) {
      EXPECT_TRUE(values.contains(std::string(info.name))) << info.name;
    }
  }
}

}  // namespace
}  // namespace tacho::server::goodput
