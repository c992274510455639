#include "server/conditions/window/track_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace tacho::server::conditions {
namespace {

using ::testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<int64_t> Steps(const std::vector<Point>& points) {
  std::vector<int64_t> steps;
  for (const Point& point : points) steps.push_back(point.step);
  return steps;
}

TEST(TrackPointsTest, LatePointsFindTheirPlaceAndRepeatsReplace) {
  std::vector<Point> points;
  for (const int64_t i : {1, 2, 5, 4, 3, 5, 2}) {
    AddPoint({i * 10, i, static_cast<double>(i)}, 100, &points);
  }
  EXPECT_THAT(Steps(points), ElementsAre(1, 2, 3, 4, 5));
  AddPoint({30, 3, 33}, 100, &points);
  EXPECT_EQ(points[2].value, 33);
  EXPECT_EQ(points.size(), 5u);
}

TEST(TrackPointsTest, StepsThatAreDoneAgainSupersede) {
  std::vector<Point> points;
  for (int64_t i = 1; i <= 10; ++i) AddPoint({i * 10, i, i < 8 ? 1.0 : kNaN}, 100, &points);
  AddPoint({200, 5, 2.0}, 100, &points);
  EXPECT_THAT(Steps(points), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(points.back().value, 2.0);
}

TEST(TrackPointsTest, PointsWithoutStepsAreNeverSuperseded) {
  std::vector<Point> points;
  for (int64_t i = 1; i <= 10; ++i) AddPoint({i, kNoPointStep, 0}, 100, &points);
  EXPECT_EQ(points.size(), 10u);
}

TEST(TrackPointsTest, KeepsTheNewestHalfAndTheWholeExtent) {
  std::vector<Point> points;
  constexpr size_t kMost = 64;
  for (int64_t i = 0; i < 100'000; ++i) {
    AddPoint({i, i, 0}, kMost, &points);
    ASSERT_LE(points.size(), kMost);
    ASSERT_EQ(points.back().step, i);
    const size_t newest = std::min<size_t>(static_cast<size_t>(i) + 1, kMost / 2);
    ASSERT_EQ(points[points.size() - newest].step, i + 1 - static_cast<int64_t>(newest)) << i;
  }
  EXPECT_EQ(points.front().step, 0);
}

TEST(TrackPointsTest, TheFirstNonFiniteValueStays) {
  std::vector<Point> points;
  for (int64_t i = 0; i < 10'000; ++i) AddPoint({i, i, i < 777 ? 1.0 : kNaN}, 64, &points);
  const auto first = std::find_if(points.begin(), points.end(),
                                  [](const Point& p) { return !std::isfinite(p.value); });
  ASSERT_NE(first, points.end());
  EXPECT_EQ(first->step, 777);
}

TEST(TrackPointsTest, NothingButBeginningsOfRunsIsBoundedToo) {
  std::vector<Point> points;
  for (int64_t i = 0; i < 10'000; ++i) AddPoint({i, i, i % 2 == 0 ? 1.0 : kNaN}, 64, &points);
  EXPECT_LE(points.size(), 64u);
  EXPECT_EQ(points.back().step, 9'999);
}

TEST(TrackPointsTest, AnyOrderEndsSortedAndBounded) {
  std::mt19937 random(7);
  std::vector<Point> points;
  for (int i = 0; i < 20'000; ++i) {
    const auto at = static_cast<int64_t>(random() % 5'000);
    AddPoint({at, random() % 3 == 0 ? static_cast<int64_t>(random() % 100) : at, 1}, 128, &points);
    ASSERT_LE(points.size(), 128u);
    ASSERT_TRUE(std::is_sorted(points.begin(), points.end(), [](const Point& a, const Point& b) {
      return a.time_ns < b.time_ns;
    }));
  }
}

TEST(TrackPointsTest, DropsWhatIsOlder) {
  std::vector<Point> points = {{1, 1, 0}, {2, 2, 0}, {3, 3, 0}};
  DropPointsBefore(2, &points);
  EXPECT_THAT(Steps(points), ElementsAre(2, 3));
}

}  // namespace
}  // namespace tacho::server::conditions
