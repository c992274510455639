#include "server/http/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "server/http/families.h"
#include "server/http/family_text.h"
#include "tests/server/memory_store.h"

namespace tacho::server::http {
namespace {

using testing::HasSubstr;
using testing::Not;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

class MetricsPageTest : public testing::Test {
 protected:
  MetricsPageTest() {
    options_.store = store_.get();
    options_.registry = std::make_shared<prometheus::Registry>();
    options_.options.set_staleness(absl::ToInt64Nanoseconds(absl::Minutes(5)));
    options_.options.set_max_series(1000);
    options_.options.set_built_in_rules(true);
    options_.now = [] { return kNow; };
  }
  void AddRows() {
    for (uint32_t task = 0; task < 3; ++task) {
      const std::string host = "h" + std::to_string(task);
      store_.AddLatestRow(
          {store_.AddSeries("my \"job\"\n", MetricNamed("loss"), task, host),
           store_.AddSeries("my \"job\"\n", MetricNamed("tpu.hbm/used"), task, host),
           store_.AddSeries("my \"job\"\n", MetricNamed("n_count"), task, host),
           store_.AddSeries("my \"job\"\n", MetricNamed("examples", storage::MetricType::kCounter),
                            task, host)},
          2, absl::ToUnixNanos(kNow), 40 + task, kNow,
          {1.5, task == 0 ? std::numeric_limits<double>::quiet_NaN() : 8e9, 3, 1e6});
    }
  }

  MemoryStore store_;
  MetricsPageOptions options_;
};

TEST_F(MetricsPageTest, ShowsTheAggregatesThatADashboardAsksFor) {
  AddRows();
  const std::string page = MetricsPage(options_).Render();
  EXPECT_THAT(page, HasSubstr("tacho_job_loss{job=\"my \\\"job\\\"\\n\",stat=\"avg\"} 1.5\n"));
  EXPECT_THAT(page, HasSubstr("stat=\"non_finite\",metric=\"tpu.hbm/used\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tacho_job_tasks{job=\"my \\\"job\\\"\\n\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("stat=\"max\"} 42\n"));
}

TEST_F(MetricsPageTest, TellsWhetherItIsReadyAndWhetherTheDiskRefuses) {
  Readiness readiness;
  options_.readiness = &readiness;
  options_.storage_path = "/";
  const MetricsPage page(options_);
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_ready 0\n")) << "starting";
  readiness.SetReady();
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_ready 1\n"));
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_storage_refusing 0\n"));
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_storage_available_bytes "));
  readiness.SetHeldBy("no space left");
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_ready 0\n"));
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_storage_refusing 1\n"));
  readiness.SetHeldBy("");
  readiness.SetClockDoubt("the clock jumped");
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_ready 0\n"));
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_storage_refusing 0\n"));
  EXPECT_EQ(readiness.WhyNotReady(), "the clock jumped");
}

TEST_F(MetricsPageTest, ShowsWhatTheRegistryAndTheStoreHold) {
  prometheus::BuildCounter()
      .Name("x_total")
      .Help("X.")
      .Register(*options_.registry)
      .Add({})
      .Increment(3);
  AddRows();
  const std::string page = MetricsPage(options_).Render();
  EXPECT_THAT(page, HasSubstr("\nx_total 3\n"));
  EXPECT_THAT(page, HasSubstr("\ntacho_storage_samples_appended_total 12\n"));
}

TEST_F(MetricsPageTest, ShowsEveryDigitOfTheStoresFigures) {
  storage::StoreStats stats;
  stats.samples_appended = 12345678901;
  stats.commit_latency_us_buckets[0] = 1;   // Under 1 µs.
  stats.commit_latency_us_buckets[10] = 2;  // 512 to 1024 µs.
  stats.commit_latency_us_buckets[23] = 4;  // Longer than all.
  stats.commit_seconds = 0.5;
  std::string page;
  AppendFamilies(StoreFamilies(stats), &page);
  EXPECT_THAT(page, HasSubstr("\ntacho_storage_samples_appended_total 12345678901\n"));
  EXPECT_THAT(page, HasSubstr("tacho_journal_sync_duration_seconds_bucket{le=\"1e-06\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("tacho_journal_sync_duration_seconds_bucket{le=\"0.001024\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("tacho_journal_sync_duration_seconds_bucket{le=\"+Inf\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("tacho_journal_sync_duration_seconds_count 7\n"));
  EXPECT_THAT(page, HasSubstr("tacho_journal_sync_duration_seconds_sum 0.5\n"));
}

TEST_F(MetricsPageTest, HasEveryFamilyOnceWithHelpAndType) {
  AddRows();
  std::istringstream page(MetricsPage(options_).Render());
  std::set<std::string> helped, typed;
  for (std::string line; std::getline(page, line);) {
    std::istringstream words(line);
    std::string hash, what, name, rest;
    words >> hash >> what >> name >> rest;
    if (what == "HELP") {
      EXPECT_TRUE(helped.insert(name).second && !rest.empty()) << line;
    }
    if (what == "TYPE") {
      EXPECT_TRUE(typed.insert(name).second) << line;
    }
  }
  EXPECT_EQ(helped, typed);
  EXPECT_TRUE(helped.contains("tacho_build_info"));
  EXPECT_TRUE(helped.contains("process_resident_memory_bytes"));
  EXPECT_TRUE(helped.contains("process_start_time_seconds"));
}

TEST_F(MetricsPageTest, IsCleanForPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "no promtool here";
  AddRows();
  const auto file = std::filesystem::temp_directory_path() /
                    ("tacho_metrics_" + std::to_string(getpid()) + ".txt");
  std::ofstream(file) << MetricsPage(options_).Render();
  EXPECT_EQ(std::system(("promtool check metrics < " + file.string()).c_str()), 0);
  std::filesystem::remove(file);
}

TEST_F(MetricsPageTest, CountsWhatMaxSeriesLeavesOut) {
  AddRows();
  options_.options.set_max_series(0);
  const std::string page = MetricsPage(options_).Render();
  EXPECT_THAT(page, HasSubstr("\ntacho_aggregate_series_left_out 40\n"));
  EXPECT_THAT(page, Not(HasSubstr("tacho_job_loss")));
}

TEST_F(MetricsPageTest, TakesNewLimitsOnlyOnceTheReloadIsApplied) {
  AddRows();
  const MetricsPageOptions options = options_;
  MetricsPage page(options);
  config::v1::Collector changed;
  *changed.mutable_metrics() = options_.options;
  changed.mutable_metrics()->set_max_series(0);
  const auto apply = page.Prepare(changed);
  ASSERT_TRUE(apply.ok());
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_aggregate_series_left_out 0\n"));
  (*apply)();
  EXPECT_THAT(page.Render(), HasSubstr("\ntacho_aggregate_series_left_out 40\n"));
}

TEST_F(MetricsPageTest, RulesThatAreWrongLeaveTheOldOnes) {
  AddRows();
  MetricsPage page(options_);
  config::v1::Collector changed;
  *changed.mutable_metrics() = options_.options;
  changed.mutable_metrics()->add_rules()->set_metric("(");
  EXPECT_EQ(page.Prepare(changed).status().message(),
            "metrics.rules[0].metric: \"(\" is no RE2: missing ): (");
  EXPECT_THAT(page.Render(), HasSubstr("tacho_job_loss{"));
}

TEST_F(MetricsPageTest, NewRulesHoldFromTheReload) {
  AddRows();
  MetricsPage page(options_);
  EXPECT_THAT(page.Render(), HasSubstr("tacho_job_loss{"));
  config::v1::Collector changed;
  *changed.mutable_metrics() = options_.options;
  changed.mutable_metrics()->add_rules()->set_metric(
      "loss");  // Not kept: that has no default here.
  const auto apply = page.Prepare(changed);
  ASSERT_TRUE(apply.ok()) << apply.status();
  (*apply)();
  EXPECT_THAT(page.Render(), Not(HasSubstr("tacho_job_loss{")));
}

TEST(ProcessStat, ReadsPastANameWithSpacesAndParentheses) {
  std::string stat = "42 (a) b (c)) S";  // Fields 1 to 3; then 4, 5, … as their own numbers.
  for (int field = 4; field <= 52; ++field) stat += " " + std::to_string(field);
  const ProcessStat parsed = ParseProcessStat(stat + "\n");
  EXPECT_TRUE(parsed.ok);
  EXPECT_EQ(parsed.cpu_ticks, 14u + 15u);
  EXPECT_EQ(parsed.start_ticks, 22u);
  EXPECT_EQ(parsed.resident_pages, 24u);
}

TEST(ProcessStat, IsNotOkWhereTheKernelSaysSomethingElse) {
  for (const char* stat : {"", "1", "1 (a", "1 (a) S 1 2 3",
                           "1 (a) S x x x x x x x x x x x x x x x "
                           "x x x x x x x x x x x"}) {
    EXPECT_FALSE(ParseProcessStat(stat).ok) << stat;
  }
  EXPECT_TRUE(ProcessFamilies("/nonexistent").empty());
}

}  // namespace
}  // namespace tacho::server::http
