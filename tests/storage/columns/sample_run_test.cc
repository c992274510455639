#include "storage/columns/sample_run.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;

struct MergeInput {
  FramePosition position = 0;
  SampleBlock samples;
};

MergeInput Input(FramePosition position, std::vector<int64_t> times, std::vector<double> values) {
  MergeInput input;
  input.position = position;
  input.samples.steps.assign(times.size(), kNoStep);
  input.samples.attempts.assign(times.size(), 0);
  input.samples.times = std::move(times);
  input.samples.values = std::move(values);
  return input;
}

std::vector<SampleRun> Runs(const std::vector<MergeInput>& inputs, const ReadOptions& options) {
  std::vector<SampleRun> runs;
  for (const MergeInput& input : inputs) runs.emplace_back(input.position, input.samples, options);
  return runs;
}

SampleBlock MergeSamples(const std::vector<MergeInput>& inputs, const ReadOptions& options) {
  auto runs = Runs(inputs, options);
  SampleBlock out;
  TakeMerged(&runs, INT64_MAX, &out);
  EXPECT_TRUE(runs.empty());
  return out;
}

TEST(SampleRunTest, TheLaterWriteOfATimeWinsWhateverTheOrderOfInputs) {
  const MergeInput early = Input(1, {10, 20, 30}, {1, 2, 3});
  const MergeInput late = Input(2, {20}, {22});
  EXPECT_THAT(MergeSamples({early, late}, {}).values, ElementsAre(1, 22, 3));
  EXPECT_THAT(MergeSamples({late, early}, {}).values, ElementsAre(1, 22, 3));
}

TEST(SampleRunTest, WithinOneFrameTheLastRowOfATimeWins) {
  EXPECT_THAT(MergeSamples({Input(1, {10, 10, 5}, {1, 2, 3})}, {}).values, ElementsAre(3, 2));
}

TEST(SampleRunTest, RowsOfOneTimeAndTwoStepsOrAttemptsAreTwoSamples) {
  MergeInput input = Input(1, {10, 10, 10}, {1, 2, 3});
  input.samples.steps = {1, 2, 2};
  input.samples.attempts = {0, 0, 1};
  EXPECT_THAT(MergeSamples({input}, {}).values, ElementsAre(1, 2, 3));
}

TEST(SampleRunTest, AStaleMarkerHidesNothing) {
  const double stale = StaleMarker();
  EXPECT_THAT(MergeSamples({Input(1, {10}, {1}), Input(2, {10, 11}, {stale, stale})}, {}).values,
              ElementsAre(1));
}

TEST(SampleRunTest, RangesIncludeTheirBeginAndNotTheirEnd) {
  const MergeInput input = Input(1, {10, 20, 30, INT64_MAX}, {1, 2, 3, 4});
  ReadOptions options;
  options.begin_ns = 10;
  options.end_ns = 30;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(1, 2));
  options.end_ns = INT64_MAX;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(1, 2, 3, 4)) << "no end at all";
}

TEST(SampleRunTest, StepRangesIncludeBothEndsAndLeaveRowsWithoutStepOut) {
  MergeInput input = Input(1, {10, 20, 30, 40}, {1, 2, 3, 4});
  input.samples.steps = {5, 6, 7, kNoStep};
  ReadOptions options;
  options.first_step = 6;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(2, 3));
  options.last_step = 6;
  EXPECT_THAT(MergeSamples({input}, options).values, ElementsAre(2));
}

TEST(SampleRunTest, AMergeUpToATimeLeavesTheRestForTheNext) {
  auto runs =
      Runs({Input(1, {10, 20, 30, INT64_MAX}, {1, 2, 3, 4}), Input(2, {20, 25}, {22, 25})}, {});
  SampleBlock block;
  ASSERT_TRUE(TakeMerged(&runs, 21, &block));
  EXPECT_THAT(block.values, ElementsAre(1, 22));
  EXPECT_FALSE(TakeMerged(&runs, 21, &block)) << "nothing before it is left";
  EXPECT_EQ(block.size(), 0u);
  ASSERT_TRUE(TakeMerged(&runs, INT64_MAX, &block));
  EXPECT_THAT(block.values, ElementsAre(25, 3, 4));
  EXPECT_TRUE(runs.empty());
}

}  // namespace
}  // namespace tacho::storage
