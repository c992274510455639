#include "server/query/read/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "server/query/read/step_order.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

storage::SampleBlock BlockOf(std::span<const Sample> samples) {
  storage::SampleBlock block;
  for (const Sample& sample : samples) {
    block.times.push_back(sample.time_ns);
    block.steps.push_back(sample.step);
    block.attempts.push_back(sample.attempt);
    block.values.push_back(sample.value);
  }
  return block;
}

std::vector<Bucket> Reduce(const std::vector<Sample>& samples, uint32_t points,
                           bool by_step = false) {
  AxisExtent extent;
  for (const Sample& sample : samples) extent.Include(by_step ? sample.step : sample.time_ns);
  Reducer reducer(BucketGrid(extent, points), by_step);
  reducer.Add(BlockOf(samples).columns());
  return reducer.Take();
}

std::vector<Sample> Ramp(int count) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) samples.push_back({1000 + i, i, 0, static_cast<double>(i)});
  return samples;
}

TEST(BucketGrid, NeverMakesMoreBucketsThanAsked) {
  for (const int64_t last : {0L, 1L, 7L, 99L, 100L, 101L, INT64_MAX}) {
    for (const uint32_t most : {1u, 2u, 3u, 10u, 100u, 100'000u}) {
      const BucketGrid grid({0, last}, most);
      EXPECT_LT(grid.IndexOf(last), most) << last << " in " << most;
      EXPECT_EQ(grid.IndexOf(0), 0u);
    }
  }
}

TEST(BucketGrid, HoldsTheWholeOfInt64) {
  for (const uint32_t most : {1u, 2u, 1000u}) {
    const BucketGrid grid({INT64_MIN, INT64_MAX}, most);
    EXPECT_EQ(grid.IndexOf(INT64_MIN), 0u);
    EXPECT_EQ(grid.IndexOf(INT64_MAX), most - 1);
  }
}

TEST(BucketGrid, IsAsFineAsItsStretchesAllow) {
  const std::vector<AxisExtent> stretches = {{0, 9}, {1000, 1019}, {5000, 5000}};
  EXPECT_EQ(BucketGrid(stretches, 3).width(), 20u);
  EXPECT_EQ(BucketGrid(stretches, 6).width(), 7u) << "2 + 3 + 1 buckets";
  EXPECT_EQ(BucketGrid(stretches, 7).width(), 5u) << "2 + 4 + 1 buckets";
}

// The buckets of a grid are where LastOf() says that they are.
TEST(BucketGrid, KnowsTheLastPositionsOfBuckets) {
  const std::vector<AxisExtent> stretches = {{-7, 9}, {1000, 1019}, {5000, 5000}, {5002, 5050}};
  for (const uint32_t most : {4u, 5u, 9u, 40u, 1000u}) {
    const BucketGrid grid(stretches, most);
    uint32_t before = 0;
    for (const AxisExtent& stretch : stretches) {
      EXPECT_TRUE(grid.BeginsStretch(grid.IndexOf(stretch.first)));
      for (int64_t at = stretch.first; at <= stretch.last; ++at) {
        const uint32_t index = grid.IndexOf(at);
        EXPECT_LT(index, most);
        EXPECT_LE(at, grid.LastOf(index));
        if (index != before) {
          EXPECT_EQ(index, before + 1);
          EXPECT_LT(grid.LastOf(before), at);
          EXPECT_EQ(grid.IndexAfter(before, at), index);
        }
        before = index;
      }
    }
  }
}

TEST(ReduceWithoutGaps, SpreadsBucketsOverWhatHasSamples) {
  // Two runs of 100 samples that are 90,000 apart, and a sample a long time after.
  std::vector<Sample> samples = Ramp(100);
  for (const Sample& sample : Ramp(100)) {
    samples.push_back({sample.time_ns + 90'000, sample.step, 1, sample.value});
  }
  samples.push_back({90'000'000, 100, 1, 5});
  const storage::SampleBlock block = BlockOf(samples);
  const auto reduced =
      ReduceWithoutGaps({samples.front().time_ns, samples.back().time_ns}, 21, /*by_step=*/false,
                        [&](const BucketGrid& grid) -> absl::StatusOr<std::vector<Bucket>> {
                          Reducer reducer(grid, /*by_step=*/false);
                          reducer.Add(block.columns());
                          return reducer.Take();
                        });
  ASSERT_TRUE(reduced.ok());
  EXPECT_EQ(reduced->width, 10u);
  ASSERT_EQ(reduced->buckets.size(), 21u);
  uint64_t count = 0;
  for (const Bucket& bucket : reduced->buckets) {
    EXPECT_LT(static_cast<uint64_t>(bucket.last_time_ns - bucket.first_time_ns), reduced->width);
    count += bucket.count;
  }
  EXPECT_EQ(count, samples.size());
  EXPECT_EQ(reduced->buckets[9].last_time_ns, 1099);
  EXPECT_EQ(reduced->buckets[10].first_time_ns, 91'000);
}

TEST(Reducer, KeepsEverySampleInExactlyOneBucket) {
  const std::vector<Bucket> buckets = Reduce(Ramp(1000), 7);
  ASSERT_EQ(buckets.size(), 7u);
  uint64_t count = 0;
  long double sum = 0;
  for (const Bucket& bucket : buckets) {
    count += bucket.count;
    sum += bucket.sum;
  }
  EXPECT_EQ(count, 1000u);
  EXPECT_EQ(sum, 999.0L * 1000 / 2);
  EXPECT_EQ(buckets.front().first_time_ns, 1000);
  EXPECT_EQ(buckets.back().last_time_ns, 1999);
}

TEST(Reducer, KeepsASpikeAndTheNanBesideIt) {
  std::vector<Sample> samples = Ramp(100'000);
  for (Sample& sample : samples) sample.value = 1;
  samples[54'321].value = 1e9;
  samples[54'322].value = -1e9;
  samples[54'323].value = kNan;
  samples[54'324].value = -kInf;
  const std::vector<Bucket> buckets = Reduce(samples, 10);
  ASSERT_EQ(buckets.size(), 10u);
  EXPECT_EQ(buckets[5].max, 1e9);
  EXPECT_EQ(buckets[5].min, -1e9);
  EXPECT_EQ(buckets[5].non_finite, 2u);
  EXPECT_EQ(buckets[5].count, 10'000u);
  EXPECT_EQ(buckets[5].Average(), 9996.0 / 9998.0);
  EXPECT_EQ(buckets[4].non_finite, 0u);
}

TEST(Reducer, LeavesOutBucketsWithoutASample) {
  const std::vector<Bucket> buckets =
      Reduce({{0, 0, 0, 1}, {1, 1, 0, 2}, {1'000'000, 2, 0, 3}}, 100);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].count, 2u);
  EXPECT_EQ(buckets[1].index, 99u);
}

TEST(Reducer, GivesNanForABucketWithoutAFiniteSample) {
  const double payload = std::bit_cast<double>(uint64_t{0x7ff8000000abcdef});
  const std::vector<Bucket> buckets =
      Reduce({{1, storage::kNoStep, 0, payload}, {2, storage::kNoStep, 0, kInf}}, 1);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_TRUE(std::isnan(buckets[0].min));
  EXPECT_TRUE(std::isnan(buckets[0].max));
  EXPECT_TRUE(std::isnan(buckets[0].Average()));
  EXPECT_EQ(std::bit_cast<uint64_t>(buckets[0].first), 0x7ff8000000abcdefu) << "bit for bit";
  EXPECT_EQ(buckets[0].last, kInf);
  EXPECT_EQ(buckets[0].non_finite, 2u);
}

TEST(Reducer, AveragesHugeValuesWithoutOverflow) {
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(Reduce({{1, 0, 0, huge}, {2, 0, 0, huge}, {3, 0, 0, huge}}, 1)[0].Average(), huge);
}

TEST(Reducer, AlongStepsTakesFirstAndLastByStepNotByTime) {
  // A restart goes back from step 5 to step 2.
  const std::vector<Bucket> buckets =
      Reduce({{10, 4, 0, 0.4}, {20, 5, 0, 0.5}, {30, 2, 1, 0.2}, {40, 3, 1, 0.3}, {50, 5, 1, 5.5}},
             1, /*by_step=*/true);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].first_step, 2);
  EXPECT_EQ(buckets[0].first, 0.2);
  EXPECT_EQ(buckets[0].first_time_ns, 30);
  EXPECT_EQ(buckets[0].last_step, 5);
  EXPECT_EQ(buckets[0].last, 5.5) << "the later of two samples of one step";
  EXPECT_EQ(buckets[0].count, 5u);
}

TEST(StepOrder, KeepsTheNewestAttemptOfAStepAndItsNewestTime) {
  std::vector<Sample> samples = {
      {10, 1, 0, 1}, {20, 2, 0, 2}, {40, 2, 1, 22}, {50, 2, 1, 222}, {60, 3, 0, 3}};
  KeepNewestOfEachStep(&samples);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1].value, 222);
  samples.clear();
  KeepNewestOfEachStep(&samples);
  EXPECT_TRUE(samples.empty());
}

}  // namespace
}  // namespace tacho::server::query
