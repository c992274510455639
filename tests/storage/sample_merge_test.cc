#include "storage/sample_merge.h"

#include <bit>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;

MergeInput Input(FramePosition position, std::vector<int64_t> times, std::vector<double> values) {
  MergeInput input;
  input.position = position;
  input.samples.steps.assign(times.size(), kNoStep);
  input.samples.attempts.assign(times.size(), 0);
  input.samples.times = std::move(times);
  input.samples.values = std::move(values);
  return input;
}

TEST(SampleMergeTest, TheLaterWriteOfATimeWinsWhateverTheOrderOfInputs) {
  const MergeInput early = Input(1, {10, 20, 30}, {1, 2, 3});
  const MergeInput late = Input(2, {20}, {22});
  EXPECT_THAT(MergeSamples({early, late}, {}).values, ElementsAre(1, 22, 3));
  EXPECT_THAT(MergeSamples({late, early}, {}).values, ElementsAre(1, 22, 3));
}

TEST(SampleMergeTest, WithinOneFrameTheLastRowOfATimeWins) {
  EXPECT_THAT(MergeSamples({Input(1, {10, 10, 5}, {1, 2, 3})}, {}).values, ElementsAre(3, 2));
}

TEST(SampleMergeTest, RowsOfOneTimeAndTwoStepsOrAttemptsAreTwoSamples) {
  MergeInput input = Input(1, {10, 10, 10}, {1, 2, 3});
  input.samples.steps = {1, 2, 2};
  input.samples.attempts = {0, 0, 1};
  EXPECT_THAT(MergeSamples({input}, {}).values, ElementsAre(1, 2, 3));
}

TEST(SampleMergeTest, AStaleMarkerHidesNothing) {
  const double stale = std::bit_cast<double>(kStaleMarkerBits);
  EXPECT_THAT(MergeSamples({Input(1, {10}, {1}), Input(2, {10, 11}, {stale, stale})}, {}).values,
              ElementsAre(1));
}

TEST(SampleMergeTest, RangesIncludeTheirBeginAndNotTheirEnd) {
  const MergeInput input = Input(1, {10, 20, 30, INT64_MAX}, {1, 2, 3, 4});
  ReadOptions options;
  options.begin_ns = 10;
  options.end_ns = 30;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(1, 2));
  options.end_ns = INT64_MAX;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(1, 2, 3, 4)) << "no end at all";
}

TEST(SampleMergeTest, StepRangesIncludeBothEndsAndLeaveRowsWithoutStepOut) {
  MergeInput input = Input(1, {10, 20, 30, 40}, {1, 2, 3, 4});
  input.samples.steps = {5, 6, 7, kNoStep};
  ReadOptions options;
  options.first_step = 6;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(2, 3));
  options.last_step = 6;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(2));
}

}  // namespace
}  // namespace tacho::storage
