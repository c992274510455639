#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "server/query/range/integrate_query.h"
#include "tests/server/memory_store.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSecond = 1'000'000'000;

class QueryIntegrateTest : public testing::Test {
 protected:
  QueryIntegrateTest() { request_.mutable_selector()->set_job("j"); }

  void Add(uint32_t task, const std::string& chip, const std::vector<TestSample>& samples) {
    const storage::Metric metric =
        MetricNamed("chip_power_watts", storage::MetricType::kGauge, "W");
    store_.AddSamples(
        store_.AddSeries("j", metric, task, "h" + std::to_string(task), {{"chip", chip}}), samples);
  }
  absl::Status Run() {
    found_.clear();
    return Integrate(
        *store_.get(), request_, limits_, control_, [this](const v1::IntegrateResponse& message) {
          found_.insert(found_.end(), message.integrals().begin(), message.integrals().end());
          return absl::OkStatus();
        });
  }
  void MustRun(size_t integrals) {
    const absl::Status status = Run();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(found_.size(), integrals);
  }

  MemoryStore store_;
  v1::IntegrateRequest request_;
  RangeLimits limits_;
  QueryControl control_;
  std::vector<v1::Integral> found_;
};

TEST_F(QueryIntegrateTest, AddsUpTrapezoidsBetweenSamplesOfAnySpacing) {
  Add(0, "a",
      {{0, 1, 0, 100},
       {2 * kSecond, 2, 0, 300},
       {2 * kSecond + kSecond / 2, 3, 0, 100},
       {10 * kSecond, 4, 0, 100}});
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 400 + 100 + 750);
  EXPECT_EQ(found_[0].unit(), "J");
  EXPECT_EQ(found_[0].series().metric().unit(), "W");
  EXPECT_EQ(found_[0].series_count(), 1u);
  EXPECT_EQ(found_[0].covered_ns(), 10 * kSecond);
  EXPECT_EQ(found_[0].not_covered_ns(), 0);
  EXPECT_EQ(found_[0].count(), 4u);
  EXPECT_EQ(found_[0].first_unix_ns(), 0);
  EXPECT_EQ(found_[0].last_unix_ns(), 10 * kSecond);
}

TEST_F(QueryIntegrateTest, DoesNotBridgeALongGapAndReportsIt) {
  Add(0, "a",
      {{0, 1, 0, 10},
       {60 * kSecond, 2, 0, 10},
       {121 * kSecond, 3, 1, 10},
       {131 * kSecond, 4, 1, 10}});
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 600 + 100) << "a minute is bridged, a second more is not";
  EXPECT_EQ(found_[0].covered_ns(), 70 * kSecond);
  EXPECT_EQ(found_[0].not_covered_ns(), 61 * kSecond);
  EXPECT_EQ(found_[0].gaps(), 1u);
  request_.set_max_gap_ns(61 * kSecond);
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 1310);
  EXPECT_EQ(found_[0].gaps(), 0u);
  request_.set_max_gap_ns(1);
  MustRun(1);
  EXPECT_EQ(found_[0].value(), 0);
  EXPECT_EQ(found_[0].covered_ns(), 0);
  EXPECT_EQ(found_[0].gaps(), 3u);
}

TEST_F(QueryIntegrateTest, GoesFromOneFiniteSampleToTheNext) {
  Add(0, "a",
      {{0, 1, 0, 10},
       {kSecond, 2, 0, kNan},
       {4 * kSecond, 3, 0, 30},
       {5 * kSecond, 4, 0, std::numeric_limits<double>::infinity()}});
  Add(1, "a", {{0, 1, 0, kNan}});
  MustRun(2);
  EXPECT_DOUBLE_EQ(found_[0].value(), 80);
  EXPECT_EQ(found_[0].non_finite(), 2u);
  EXPECT_EQ(found_[0].last_unix_ns(), 4 * kSecond);
  EXPECT_EQ(found_[1].count(), 1u);
  EXPECT_EQ(found_[1].value(), 0);
  EXPECT_FALSE(found_[1].has_first_unix_ns());
}

TEST_F(QueryIntegrateTest, SumsTasksThatNeverMeetAndKeepsLabelsApart) {
  Add(0, "a", {{0, 1, 0, 10}, {10 * kSecond, 2, 0, 10}});
  Add(0, "b", {{3, 1, 0, 1}, {10 * kSecond + 3, 2, 0, 1}});
  Add(1, "a", {{200 * kSecond, 1, 0, 5}, {230 * kSecond, 2, 0, 5}});
  request_.set_sum(true);
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 100 + 10 + 150);
  EXPECT_EQ(found_[0].series_count(), 3u);
  EXPECT_EQ(found_[0].covered_ns(), 50 * kSecond);
  EXPECT_EQ(found_[0].not_covered_ns(), 0) << "what lies between two tasks is no gap";
  EXPECT_FALSE(found_[0].series().has_task());
  request_.add_by("task");
  MustRun(2);
  EXPECT_EQ(found_[0].series().task(), 0u);
  EXPECT_DOUBLE_EQ(found_[0].value(), 110);
  EXPECT_DOUBLE_EQ(found_[1].value(), 150);
}

TEST_F(QueryIntegrateTest, ReadsOnlyWhatIsSelected) {
  Add(0, "a",
      {{0, 1, 0, 1}, {10 * kSecond, 2, 0, 1}, {20 * kSecond, 3, 1, 1}, {30 * kSecond, 4, 1, 1}});
  request_.mutable_time()->set_begin_unix_ns(5 * kSecond);
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 20);
  request_.clear_time();
  request_.set_attempts(v1::ATTEMPTS_LATEST);
  MustRun(1);
  EXPECT_DOUBLE_EQ(found_[0].value(), 10);
  request_.mutable_time()->set_begin_unix_ns(40 * kSecond);
  MustRun(0);
}

TEST_F(QueryIntegrateTest, TellsWhatIsWrong) {
  Add(0, "a", {{0, 1, 0, 1}});
  request_.set_max_gap_ns(-1);
  EXPECT_THAT(Run().message(), HasSubstr("max_gap_ns"));
  request_.clear_max_gap_ns();
  request_.add_by("task");
  EXPECT_THAT(Run().message(), HasSubstr("by: goes with sum only"));
  request_.set_sum(true);
  request_.set_by(0, "attempt");
  EXPECT_THAT(Run().message(), HasSubstr("by: cannot keep attempts apart"));
  request_.clear_by();
  request_.mutable_selector()->set_job("jj");
  EXPECT_TRUE(absl::IsNotFound(Run()));
}

TEST(IntegralUnit, IsTheUnitTimesSeconds) {
  EXPECT_EQ(IntegralUnit("W"), "J");
  EXPECT_EQ(IntegralUnit("kW"), "kJ");
  EXPECT_EQ(IntegralUnit("By/s"), "By");
  EXPECT_EQ(IntegralUnit(""), "s");
  EXPECT_EQ(IntegralUnit("1"), "s");
  EXPECT_EQ(IntegralUnit("Hz"), "1");
  EXPECT_EQ(IntegralUnit("Cel"), "Cel.s");
  EXPECT_EQ(IntegralUnit("J/kg"), "(J/kg).s");
}

}  // namespace
}  // namespace tacho::server::query
