#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/query/read/across.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

double FoldAtOneStep(v1::AggregateFunction function, const std::vector<double>& values) {
  Fold fold({.function = function});
  for (const double value : values) EXPECT_TRUE(fold.AddAtStep({5, 1, 0, value}).ok());
  const std::vector<FoldedPlace> places = fold.Take();
  EXPECT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].count, values.size());
  return places[0].value;
}

TEST(Fold, ComputesEachFunction) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_SUM, values), 10);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_AVG, values), 2.5);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_MIN, values), 1);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_MAX, values), 4);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_P50, values), 2.5);
  EXPECT_NEAR(FoldAtOneStep(v1::AGGREGATE_FUNCTION_P90, values), 3.7, 1e-12);
  EXPECT_NEAR(FoldAtOneStep(v1::AGGREGATE_FUNCTION_P99, values), 3.97, 1e-12);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_COUNT, values), 4);
  EXPECT_NEAR(FoldAtOneStep(v1::AGGREGATE_FUNCTION_STDDEV, values), std::sqrt(1.25), 1e-12);
}

TEST(Fold, SumAndAverageFollowIeeeWhileExtremesAndQuantilesSkipNan) {
  const std::vector<double> values = {1, kNan, 3};
  EXPECT_TRUE(std::isnan(FoldAtOneStep(v1::AGGREGATE_FUNCTION_SUM, values)));
  EXPECT_TRUE(std::isnan(FoldAtOneStep(v1::AGGREGATE_FUNCTION_AVG, values)));
  EXPECT_TRUE(std::isnan(FoldAtOneStep(v1::AGGREGATE_FUNCTION_STDDEV, values)));
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_MIN, values), 1);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_MAX, values), 3);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_P50, values), 2);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_COUNT, values), 3) << "NaN is a sample";
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_MAX, {1, kInf}), kInf);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_AVG, {1, -kInf}), -kInf);
  EXPECT_EQ(FoldAtOneStep(v1::AGGREGATE_FUNCTION_P50, {kInf, kInf}), kInf);
}

TEST(Fold, GivesNanWhereNothingButNanMet) {
  for (const auto function : {v1::AGGREGATE_FUNCTION_MIN, v1::AGGREGATE_FUNCTION_MAX,
                              v1::AGGREGATE_FUNCTION_P50, v1::AGGREGATE_FUNCTION_AVG}) {
    EXPECT_TRUE(std::isnan(FoldAtOneStep(function, {kNan, kNan})));
  }
}

TEST(Fold, CountsWhatIsNotFiniteWhateverTheFunction) {
  Fold fold({.function = v1::AGGREGATE_FUNCTION_MIN});
  for (const double value : {1.0, kNan, kInf}) ASSERT_TRUE(fold.AddAtStep({1, 7, 0, value}).ok());
  const std::vector<FoldedPlace> places = fold.Take();
  EXPECT_EQ(places[0].non_finite, 2u);
  const std::vector<Bucket> buckets = ReduceSteps(places, 10).buckets;
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].count, 3u);
  EXPECT_EQ(buckets[0].non_finite, 2u);
  EXPECT_EQ(buckets[0].min, 1);
}

TEST(Fold, KeepsStepsApartAndInOrder) {
  Fold fold({.function = v1::AGGREGATE_FUNCTION_SUM});
  for (const int64_t step : {3, 1, 2, 3, 1}) {
    ASSERT_TRUE(fold.AddAtStep({100 + step, step, static_cast<uint32_t>(step), 1}).ok());
  }
  const std::vector<FoldedPlace> places = fold.Take();
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].position, 1);
  EXPECT_EQ(places[0].value, 2);
  EXPECT_EQ(places[1].value, 1);
  EXPECT_EQ(places[2].attempt, 3u);
  EXPECT_TRUE(fold.Take().empty());
}

Bucket BucketOf(std::vector<double> values) {
  Bucket bucket;
  int64_t time_ns = 0;
  for (const double value : values) bucket.Add({++time_ns, storage::kNoStep, 0, value}, false);
  return bucket;
}

TEST(EntryOf, IsTheExtremeForMinAndMaxSoThatNoSpikeIsLost) {
  const Bucket spiky = BucketOf({1, 100, -100, kNan});
  EXPECT_EQ(EntryOf(spiky, {v1::AGGREGATE_FUNCTION_MAX}), 100);
  EXPECT_EQ(EntryOf(spiky, {v1::AGGREGATE_FUNCTION_MIN}), -100);
  EXPECT_EQ(EntryOf(BucketOf({1, -kInf}), {v1::AGGREGATE_FUNCTION_MIN}), -kInf);
  EXPECT_EQ(EntryOf(BucketOf({1, -kInf}), {v1::AGGREGATE_FUNCTION_MAX}), 1);
  EXPECT_EQ(EntryOf(BucketOf({kNan, -kInf}), {v1::AGGREGATE_FUNCTION_MAX}), -kInf);
  EXPECT_TRUE(std::isnan(EntryOf(BucketOf({kNan}), {v1::AGGREGATE_FUNCTION_MAX})));
}

TEST(EntryOf, IsTheAverageForTheOthers) {
  EXPECT_EQ(EntryOf(BucketOf({1, 2, 6}), {v1::AGGREGATE_FUNCTION_SUM}), 3);
  EXPECT_TRUE(std::isnan(EntryOf(BucketOf({1, kNan}), {v1::AGGREGATE_FUNCTION_AVG})));
  EXPECT_EQ(EntryOf(BucketOf({1, kNan}), {v1::AGGREGATE_FUNCTION_P50}), 1) << "NaN is skipped";
  EXPECT_EQ(EntryOf(BucketOf({1, kInf}), {v1::AGGREGATE_FUNCTION_AVG}), kInf);
  EXPECT_TRUE(std::isnan(EntryOf(BucketOf({-kInf, kInf}), {v1::AGGREGATE_FUNCTION_AVG})));
}

TEST(Fold, RefusesMorePlacesThanItMayHold) {
  Fold fold({.function = v1::AGGREGATE_FUNCTION_SUM});
  absl::Status status;
  int64_t step = 0;
  // No assertion in the loop: two million of them take seconds.
  for (; status.ok() && step <= static_cast<int64_t>(kMaxPlaces); ++step) {
    status = fold.AddAtStep({step, step, 0, 1});
  }
  EXPECT_EQ(step, static_cast<int64_t>(kMaxPlaces) + 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("range of steps"));
}

}  // namespace
}  // namespace tacho::server::query
