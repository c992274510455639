// Query.Forecast over a real store.
#include "server/query/lists/forecast_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = "job";

class ForecastQueryTest : public QueryStoreFixture {
 protected:
  void AppendAttributes(std::map<std::string, std::string> values) {
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendAttributes({}, {kJob, 0, std::move(values)}, std::move(done));
    });
  }

  // A step a second; the loss falls by a power law from `first` on.
  void AppendSteps(uint32_t task, uint32_t attempt, int64_t first, int64_t last, double add,
                   int64_t begin_s, const std::string& metric = "loss") {
    const auto layout = Register(kJob, task, attempt, {metric, "lr"});
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    for (int64_t step = first; step <= last; ++step) {
      times.push_back(kTestBase + (begin_s + step - first) * kTestSecond);
      steps.push_back(step);
      values.insert(values.end(), {add + 4 * std::pow(static_cast<double>(step + 1), -0.5), 0.1});
    }
    Append(layout, times, steps, values);
  }

  v1::ForecastResponse Ask(const v1::ForecastRequest& request, int64_t now_s = 1000) {
    v1::ForecastResponse response;
    const absl::Status status = GetForecast(*store_, request, conditions::SignalNames(), 1000,
                                            absl::FromUnixNanos(kTestBase + now_s * kTestSecond),
                                            QueryControl(), &response);
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }
  v1::ForecastResponse Ask(int64_t now_s = 1000) {
    v1::ForecastRequest request;
    request.set_job(kJob);
    return Ask(request, now_s);
  }
  absl::Status Refusal(const v1::ForecastRequest& request) {
    v1::ForecastResponse response;
    return GetForecast(*store_, request, conditions::SignalNames(), 1000, absl::UnixEpoch(),
                       QueryControl(), &response);
  }
};

TEST_F(ForecastQueryTest, EndAndLossComeFromThePlanAndTheLowestTask) {
  AppendSteps(3, 0, 0, 999, 2, 0);
  AppendSteps(1, 0, 0, 999, 1, 0);
  AppendAttributes({{"planned_steps", "4000"}});
  const v1::ForecastResponse answer = Ask();
  EXPECT_EQ(answer.newest_step(), 999);
  EXPECT_EQ(answer.last_step(), 3999);  // It counts from 0.
  ASSERT_TRUE(answer.has_end()) << answer.no_end();
  EXPECT_NEAR(static_cast<double>(answer.end().likely_unix_ns() - kTestBase) / 1e9, 3999, 2);
  ASSERT_TRUE(answer.has_value()) << answer.no_value();
  EXPECT_EQ(answer.value().metric(), "loss");
  EXPECT_EQ(answer.value().task(), 1u);
  EXPECT_NEAR(answer.value().likely(), 1 + 4 * std::pow(4000, -0.5), 0.01);
  EXPECT_DOUBLE_EQ(answer.band_share(), 0.8);
}

TEST_F(ForecastQueryTest, StepsThatWereRunAgainCountOnce) {
  AppendSteps(0, 0, 0, 999, 50, 0);  // From step 200 on superseded.
  AppendSteps(0, 1, 200, 1199, 1, 2000);
  AppendAttributes({{"planned_steps", "2400"}});
  const v1::ForecastResponse answer = Ask(3000);
  EXPECT_EQ(answer.newest_step(), 1199);
  ASSERT_TRUE(answer.has_value());
  EXPECT_LT(answer.value().now(), 2);
  EXPECT_NEAR(answer.value().likely(), 1 + 4 * std::pow(2400, -0.5), 0.05);
  // 200 steps took 200 s, 1,000 s are lost and 800 s down, and 1,000 steps took 1,000 s.
  ASSERT_TRUE(answer.has_end());
  EXPECT_GT(answer.end().latest_unix_ns() - kTestBase, 4200 * kTestSecond);
}

TEST_F(ForecastQueryTest, WhatIsMissingIsSaid) {
  AppendSteps(0, 0, 0, 5, 1, 0, "something");
  v1::ForecastResponse answer = Ask();
  EXPECT_FALSE(answer.has_end());
  EXPECT_THAT(answer.no_value(), HasSubstr("known as a loss"));
  EXPECT_THAT(answer.no_end(), HasSubstr("planned_steps"));
  v1::ForecastRequest request;
  request.set_job(kJob);
  request.set_metric("something");
  request.set_last_step(100);
  answer = Ask(request);
  EXPECT_THAT(answer.no_end(), HasSubstr("6 times"));
  EXPECT_THAT(answer.no_value(), HasSubstr("there are 6 values"));
  request.set_last_step(5);
  EXPECT_THAT(Ask(request).no_end(), HasSubstr("6 times"));
}

TEST_F(ForecastQueryTest, WrongRequestsAreRefusedByField) {
  AppendSteps(0, 0, 0, 5, 1, 0);
  v1::ForecastRequest request;
  EXPECT_THAT(std::string(Refusal(request).message()), HasSubstr("job"));
  request.set_job("jab");
  EXPECT_EQ(Refusal(request).code(), absl::StatusCode::kNotFound);
  request.set_job(kJob);
  request.set_metric("los");
  EXPECT_THAT(std::string(Refusal(request).message()), HasSubstr("\"los\""));
  request.clear_metric();
  request.set_last_step(-1);
  EXPECT_THAT(std::string(Refusal(request).message()), HasSubstr("last_step"));
}

}  // namespace
}  // namespace tacho::server::query
