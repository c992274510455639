#include <gmock/gmock.h>

#include "server/query/lists/first_non_finite.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

class FirstNonFiniteTest : public QueryStoreFixture, public testing::WithParamInterface<uint32_t> {
 protected:
  FirstNonFiniteTest() : QueryStoreFixture(GetParam()) {
    request_.mutable_selector()->set_job("train");
  }

  absl::Status Run() {
    response_.Clear();
    return FirstNonFinite(*store_, request_, 1000, control_, &response_);
  }

  // Straight from the words of query.proto.
  v1::FirstNonFiniteResponse Naive() const {
    v1::FirstNonFiniteResponse response;
    std::vector<v1::NonFinite> spread;
    for (const auto& [series, samples] : jobs_.at("train")) {
      response.set_series_examined(response.series_examined() + 1);
      v1::NonFinite turned;
      bool found = false;
      for (const auto& [key, value] : samples) {
        const auto [time, attempt, step] = key;
        const bool stepped = request_.has_steps();
        if (stepped && (step < request_.steps().begin() || step > request_.steps().end())) continue;
        if (request_.attempts() == v1::ATTEMPTS_EFFECTIVE && IsSuperseded("train", attempt, step)) {
          continue;
        }
        response.set_samples_examined(response.samples_examined() + 1);
        const bool finite = std::isfinite(value);
        if (!found && finite) {
          turned.set_last_finite(value);
          turned.set_last_finite_unix_ns(time);
          turned.clear_last_finite_step();
          if (step != storage::kNoStep) turned.set_last_finite_step(step);
        } else if (!found) {
          found = true;
          turned.mutable_series()->mutable_metric()->set_name(series.first);
          turned.mutable_series()->set_task(series.second);
          turned.set_time_unix_ns(time);
          if (step != storage::kNoStep) turned.set_step(step);
          turned.set_attempt(attempt);
          turned.set_value(value);
          turned.set_non_finite(1);
        } else {
          finite ? turned.set_finite_after(turned.finite_after() + 1)
                 : turned.set_non_finite(turned.non_finite() + 1);
        }
      }
      if (found) spread.push_back(turned);
    }
    std::stable_sort(spread.begin(), spread.end(), [](const auto& a, const auto& b) {
      return a.time_unix_ns() < b.time_unix_ns();
    });
    response.set_series_turned(spread.size());
    const uint32_t most = request_.max_series() == 0 ? 100 : request_.max_series();
    if (spread.size() > most) spread.resize(most);
    for (const auto& turned : spread) *response.add_spread() = turned;
    return response;
  }

  void ExpectAsNaive() {
    ASSERT_TRUE(Run().ok());
    for (v1::NonFinite& turned : *response_.mutable_spread()) {
      v1::SeriesInfo name;
      name.mutable_metric()->set_name(turned.series().metric().name());
      name.set_task(turned.series().task());
      *turned.mutable_series() = name;
    }
    EXPECT_EQ(response_.DebugString(), Naive().DebugString());
  }

  v1::FirstNonFiniteRequest request_;
  QueryControl control_;
  v1::FirstNonFiniteResponse response_;
};

TEST_P(FirstNonFiniteTest, FindsWhatALookAtEverySampleFinds) {
  MakeJob("train", {.tasks = 5, .non_finite_one_in = 400, .metrics = {"a", "b", "c"}});
  ExpectAsNaive();
  ASSERT_TRUE(store_->Seal().ok());
  ExpectAsNaive();
  request_.set_max_series(2);
  ExpectAsNaive();
  request_.set_attempts(v1::ATTEMPTS_EFFECTIVE);
  ExpectAsNaive();
  request_.mutable_steps()->set_begin(50);
  request_.mutable_steps()->set_end(250);
  ExpectAsNaive();
}

INSTANTIATE_TEST_SUITE_P(Seeds, FirstNonFiniteTest, testing::Range(1u, 9u));

class FiniteTest : public FirstNonFiniteTest {};

TEST_P(FiniteTest, SaysThatAllIsFiniteAndWhatIsWrongWithARequest) {
  EXPECT_TRUE(absl::IsNotFound(Run()));
  MakeJob("train", {.non_finite_one_in = 0});
  ASSERT_TRUE(store_->Seal().ok());
  ExpectAsNaive();
  EXPECT_EQ(response_.spread_size(), 0);
  EXPECT_GT(response_.samples_examined(), 1000u);
  request_.set_max_series(10'001);
  EXPECT_THAT(Run().message(), HasSubstr("max_series"));
  request_.clear_max_series();
  request_.mutable_time()->set_begin_unix_ns(5);
  request_.mutable_time()->set_end_unix_ns(4);
  EXPECT_TRUE(absl::IsInvalidArgument(Run()));
}

TEST_P(FiniteTest, LeavesOutSupersededSamplesOfColumnsThatAreSummarised) {
  for (uint32_t attempt = 0; attempt < 2; ++attempt) {
    const auto layout = Register("train", 0, attempt, {"loss"});
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    for (int64_t step = 0; step < 100; ++step) {
      times.push_back(kTestBase + (attempt * 1000 + step) * kTestSecond);
      steps.push_back(attempt * 40 + step);
      values.push_back(1);
    }
    Append(layout, times, steps, values);
    ASSERT_TRUE(store_->Seal().ok());
  }
  ExpectAsNaive();
  EXPECT_EQ(response_.samples_examined(), 200u);
  request_.set_attempts(v1::ATTEMPTS_EFFECTIVE);
  ExpectAsNaive();
  EXPECT_EQ(response_.samples_examined(), 140u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FiniteTest, testing::Values(1u));

}  // namespace
}  // namespace tacho::server::query
