#include "server/cost/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tacho::server::cost {
namespace {

using goodput::BucketSpan;
using goodput::GoodputBucket;
using ::testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

BucketSpan Span(GoodputBucket bucket, int64_t begin_s, int64_t end_s) {
  return {.bucket = bucket, .begin_ns = begin_s * kSecond, .end_ns = end_s * kSecond};
}

class EnergyTest : public testing::Test {
 protected:
  // Power of one series within a window in seconds; times in seconds.
  void Meter(std::vector<std::pair<int64_t, double>> samples,
             std::vector<std::pair<int64_t, int64_t>> windows = {{0, 1000}}) {
    std::vector<TimeWindow> in_ns;
    for (const auto& [begin, end] : windows) in_ns.push_back({begin * kSecond, end * kSecond});
    meter_.Begin(in_ns);
    for (const auto& [time_s, watts] : samples) meter_.Add(time_s * kSecond, watts);
    meter_.End();
  }
  // Every ten seconds from 0 to `last`.
  static std::vector<std::pair<int64_t, double>> Constant(double watts, int64_t last) {
    std::vector<std::pair<int64_t, double>> samples;
    for (int64_t at = 0; at <= last; at += 10) samples.emplace_back(at, watts);
    return samples;
  }
  double In(GoodputBucket bucket) const {
    return meter_.energy().joules[static_cast<size_t>(bucket)];
  }
  double CoveredSeconds() const { return meter_.energy().covered_ns / 1e9; }

  std::vector<BucketSpan> spans_ = {Span(GoodputBucket::kInitializing, 0, 40),
                                    Span(GoodputBucket::kProductiveStep, 40, 1000)};
  EnergyMeter meter_{spans_};
};

TEST_F(EnergyTest, PowerIsStraightBetweenSamples) {
  Meter({{0, 100}, {10, 200}, {30, 200}});
  // (100 + 200) / 2 x 10 + 200 x 20
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 5500);
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 30);
  EXPECT_DOUBLE_EQ(meter_.energy().due_ns, 1e12);
}

TEST_F(EnergyTest, APieceIsSharedByTheBucketsThatItLiesIn) {
  Meter({{30, 100}, {50, 300}});  // 200 W where the step begins, at 40 s.
  EXPECT_DOUBLE_EQ(In(GoodputBucket::kInitializing), 1500);
  EXPECT_DOUBLE_EQ(In(GoodputBucket::kProductiveStep), 2500);
}

TEST_F(EnergyTest, OnlyWhatLiesInTheWindowsCounts) {
  Meter(Constant(100, 200), {{5, 15}, {100, 125}});
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 100 * 10 + 100 * 25);
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 35);
  EXPECT_DOUBLE_EQ(meter_.energy().due_ns, 35e9);
}

TEST_F(EnergyTest, AGapOfMoreThanFourIntervalsIsNotBridged) {
  auto samples = Constant(100, 100);
  samples.emplace_back(140, 100);  // 40 s: four intervals.
  samples.emplace_back(181, 100);  // 41 s: a gap.
  samples.emplace_back(191, 100);
  Meter(samples);
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 100 * 150);
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 150);
  EXPECT_EQ(meter_.energy().gaps, 1u);
}

TEST_F(EnergyTest, WhileTheIntervalIsNotKnownAMinuteIsTheLimit) {
  Meter({{0, 100}, {60, 100}, {121, 100}});
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 60);
  EXPECT_EQ(meter_.energy().gaps, 1u);
}

TEST_F(EnergyTest, ASeriesThatIsSampledLessOftenIsFollowedAgain) {
  std::vector<std::pair<int64_t, double>> samples;
  for (int64_t at = 0; at <= 20; ++at) samples.emplace_back(at, 100);
  for (int64_t at = 30; at <= 500; at += 10) samples.emplace_back(at, 100);
  Meter(samples);
  // Of fifteen intervals eight must be long before their lower median is.
  EXPECT_EQ(meter_.energy().gaps, 8u);
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 500 - 80);
}

TEST_F(EnergyTest, SamplesThatAreNoPowerAreMissingSamples) {
  const double infinity = std::numeric_limits<double>::infinity();
  Meter({{0, 100}, {10, kNan}, {20, -5}, {30, 100}, {40, infinity}, {50, 100}, {60, 0}});
  // 0 to 30 and 30 to 50 at 100 W, then down to nothing.
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 3000 + 2000 + 500);
  EXPECT_EQ(meter_.energy().refused, 3u);
  EXPECT_EQ(meter_.energy().gaps, 0u);
}

TEST_F(EnergyTest, ALongRunOfWrongSamplesIsAGap) {
  auto samples = Constant(100, 100);
  for (int64_t at = 110; at <= 200; at += 10) samples.emplace_back(at, kNan);
  samples.emplace_back(210, 100);
  Meter(samples);
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 100 * 100);
  EXPECT_EQ(meter_.energy().gaps, 1u);
  EXPECT_EQ(meter_.energy().refused, 10u);
}

TEST_F(EnergyTest, AClockThatJumpsAddsNothingTwice) {
  auto samples = Constant(100, 100);
  samples.emplace_back(900, 100);  // Forward by 790 s, and back again.
  samples.emplace_back(110, 100);
  samples.emplace_back(120, 100);
  samples.emplace_back(910, 100);
  Meter(samples);
  // The store gives samples by time; what is out of order all the same is left out.
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 100 * 100 + 100 * 10);
  EXPECT_EQ(meter_.energy().gaps, 1u);
}

TEST_F(EnergyTest, SeriesAddUp) {
  Meter(Constant(100, 100), {{0, 100}});
  Meter(Constant(50, 60), {{0, 100}});
  EXPECT_DOUBLE_EQ(meter_.energy().total(), 10'000 + 3'000);
  EXPECT_DOUBLE_EQ(CoveredSeconds(), 160);
  EXPECT_DOUBLE_EQ(meter_.energy().due_ns, 200e9);
}

TEST(TimeWindowTest, WindowsAreJoinedAndCut) {
  EXPECT_THAT(Joined({{5, 9}, {0, 3}, {3, 4}, {7, 7}, {8, 12}}),
              ElementsAre(TimeWindow{0, 4}, TimeWindow{5, 12}));
  EXPECT_THAT(Common({{0, 4}, {5, 12}}, {{2, 6}, {11, 20}}),
              ElementsAre(TimeWindow{2, 4}, TimeWindow{5, 6}, TimeWindow{11, 12}));
}

}  // namespace
}  // namespace tacho::server::cost
