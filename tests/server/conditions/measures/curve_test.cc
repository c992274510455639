#include "server/conditions/measures/curve.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/conditions/detectors/curve_windows.h"

namespace tacho::server::conditions {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> StepsOf(const std::vector<Point>& points) {
  std::vector<int64_t> steps;
  for (const Point& point : points) steps.push_back(point.step);
  return steps;
}

std::vector<Point> PointsAt(const std::vector<int64_t>& steps) {
  std::vector<Point> points;
  for (const int64_t step : steps) points.push_back({.step = step, .value = 1});
  return points;
}

TEST(EffectivePointsTest, ARestartDropsWhatItSupersedes) {
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({1, 2, 3, 4, 5, 3, 4, 5, 6}))),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({10, 20, 30, 15, 25}))), ElementsAre(10, 15, 25));
}

TEST(EffectivePointsTest, OnePointOutOfOrderDropsOnlyItself) {
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({1, 2, 3, 0, 4, 5}))), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({1, 2, 3, 0}))), ElementsAre(1, 2, 3));
}

TEST(EffectivePointsTest, OfOneStepTheLastCounts) {
  const std::vector<Point> points = EffectivePoints({{1, 7, 0.5}, {2, 7, 0.25}});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].value, 0.25);
}

TEST(EffectivePointsTest, NumbersPointsWithoutSteps) {
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({kNoPointStep, kNoPointStep}))), ElementsAre(0, 1));
  EXPECT_THAT(StepsOf(EffectivePoints(PointsAt({kNoPointStep, 4}))), ElementsAre(4));
}

TEST(JobCurveTest, IsTheMedianOfTheTasksAtEachStepWithoutNonFiniteValues) {
  WindowOf window;
  window.Add(0, Signal::kLoss, {1, 2, 3}).Add(1, Signal::kLoss, {3, kNan, 5});
  window.Add(2, Signal::kLoss, {9, 4, kInf});
  EXPECT_THAT(JobCurve(window, Signal::kLoss).Values(0, 3), ElementsAre(3, 3, 4));
}

TEST(JobCurveTest, IsEmptyWithoutTheSignal) {
  EXPECT_TRUE(JobCurve(WindowOf().Add(0, Signal::kLoss, {1}), Signal::kGradNorm).points.empty());
}

TEST(LearningRateRoseTest, SeesARestartOfTheScheduleOnly) {
  WindowOf decay;
  decay.Add(0, Signal::kLearningRate, Curved(100, [](double i) { return 1 / (1 + i); }));
  EXPECT_FALSE(LearningRateRose(decay, 10, 90, 2));
  WindowOf restart;
  restart.Add(0, Signal::kLearningRate, Curved(100, [](double i) { return i < 50 ? 0.1 : 1.0; }));
  EXPECT_TRUE(LearningRateRose(restart, 10, 90, 2));
  EXPECT_FALSE(LearningRateRose(restart, 60, 90, 2)) << "before those steps";
}

}  // namespace
}  // namespace tacho::server::conditions
