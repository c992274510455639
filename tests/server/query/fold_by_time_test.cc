// Series that are entered into a fold as their columns come, against whole buckets of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "server/query/read/across.h"
#include "server/query/read/reduce.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

uint64_t BitsOf(double value) {
  return std::isnan(value) ? 1 : std::bit_cast<uint64_t>(value);  // One NaN is as good as another.
}

void ExpectEqual(const std::vector<FoldedPlace>& actual, const std::vector<FoldedPlace>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(actual[i].position, expected[i].position);
    EXPECT_EQ(actual[i].first_time_ns, expected[i].first_time_ns);
    EXPECT_EQ(actual[i].last_time_ns, expected[i].last_time_ns);
    EXPECT_EQ(actual[i].first_step, expected[i].first_step);
    EXPECT_EQ(actual[i].last_step, expected[i].last_step);
    EXPECT_EQ(actual[i].count, expected[i].count);
    EXPECT_EQ(actual[i].non_finite, expected[i].non_finite);
    EXPECT_EQ(BitsOf(actual[i].lowest), BitsOf(expected[i].lowest));
    EXPECT_EQ(BitsOf(actual[i].highest), BitsOf(expected[i].highest));
    EXPECT_EQ(BitsOf(actual[i].value), BitsOf(expected[i].value));
  }
}

// Whole numbers, of which no order of addition loses anything.
storage::SampleBlock RandomSeries(std::mt19937* random) {
  const auto one_in = [random](uint32_t n) { return (*random)() % n == 0; };
  storage::SampleBlock series;
  int64_t time = 1000 + static_cast<int64_t>((*random)() % 50);
  const double odd[] = {kNan, kInf, -kInf};
  while (time <= 2000) {
    series.times.push_back(time);
    series.steps.push_back(one_in(9) ? storage::kNoStep : time / 3);
    series.values.push_back(one_in(40) ? odd[(*random)() % 3]
                                       : static_cast<double>(1 + (*random)() % 1000));
    time += one_in(30) ? 90 : 1 + static_cast<int64_t>((*random)() % 4);
  }
  series.attempts.resize(series.times.size());
  return series;
}

storage::SampleSummary Summary(int64_t time_ns) {
  return {.first_time_ns = time_ns,
          .last_time_ns = time_ns,
          .first = 5,
          .last = 5,
          .count = 3,
          .min = 4,
          .max = 6,
          .sum = 15};
}

class FoldByTimeTest : public testing::TestWithParam<uint32_t> {};

TEST_P(FoldByTimeTest, GivesWhatWholeBucketsGive) {
  const BucketGrid grid({1000, 3000}, 1 + GetParam() * 7);
  for (int function = v1::AGGREGATE_FUNCTION_SUM; function <= v1::AGGREGATE_FUNCTION_QUANTILE;
       ++function) {
    for (const bool enter_sums : {false, true}) {
      SCOPED_TRACE(function);
      std::mt19937 random(GetParam());
      const FoldOptions options = {static_cast<v1::AggregateFunction>(function), 0.3, enter_sums};
      Fold streamed(options);
      FoldByTime by_time(grid, &streamed);
      Fold expected(options);
      for (int i = 0; i < 5; ++i) {
        const storage::SampleBlock series = RandomSeries(&random);
        Reducer reducer(grid, /*by_step=*/false);
        for (size_t begin = 0; begin < series.size();) {
          const size_t end = std::min(series.size(), begin + 1 + random() % 200);
          reducer.Add(series.columns().Rows(begin, end));
          by_time.Add(series.columns().Rows(begin, end));
          begin = end;
        }
        // In the bucket at hand, and in one of its own.
        for (const int64_t time_ns : {2001, 2950}) {
          if (random() % 2 == 0) continue;
          reducer.AddByTime(Summary(time_ns));
          by_time.AddByTime(Summary(time_ns));
        }
        for (const Bucket& bucket : reducer.Take()) ASSERT_TRUE(expected.AddBucket(bucket).ok());
        ASSERT_TRUE(by_time.EndSeries().ok());
      }
      ExpectEqual(streamed.Take(), expected.Take());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FoldByTimeTest, testing::Range(0u, 20u));

TEST(FoldByTime, TellsThatAQuantileWouldHoldTooMuch) {
  constexpr size_t kBuckets = 1024;
  const BucketGrid grid({0, kBuckets - 1}, kBuckets);
  storage::SampleBlock series;
  for (size_t i = 0; i < kBuckets; ++i) {
    series.times.push_back(static_cast<int64_t>(i));
    series.steps.push_back(storage::kNoStep);
    series.values.push_back(1);
  }
  Fold fold({.function = v1::AGGREGATE_FUNCTION_P50});
  FoldByTime by_time(grid, &fold);
  for (size_t held = 0; held < kMaxHeldValues; held += kBuckets) {
    by_time.Add(series.columns());
    ASSERT_TRUE(by_time.EndSeries().ok());
  }
  by_time.Add(series.columns());
  EXPECT_EQ(by_time.EndSeries().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tacho::server::query
