// The choice of points, against a reference that looks at all of them at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "server/tensorboard/sampler.h"

namespace tacho::server::tb {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Comparable bit for bit.
using Place = std::tuple<int64_t, int64_t, uint64_t>;
std::vector<Place> PlacesOf(const std::vector<ScalarPoint>& points) {
  std::vector<Place> places;
  for (const ScalarPoint& point : points) {
    places.emplace_back(point.step, point.time_ns, std::bit_cast<uint64_t>(point.value));
  }
  return places;
}

std::vector<ScalarPoint> Sampled(const std::vector<ScalarPoint>& points, size_t max_points) {
  ScalarSampler sampler(max_points);
  for (const ScalarPoint& point : points) sampler.Add(point);
  return sampler.Take();
}

int64_t BlockOf(int64_t step, int shift) { return shift == 64 ? 0 : step >> shift; }

// Smallest k for which blocks of 2^k steps, aligned to that, are no more than allowed.
int ShiftFor(int64_t first, int64_t last, int64_t max_buckets) {
  int shift = 0;
  while (BlockOf(last, shift) - BlockOf(first, shift) + 1 > max_buckets) ++shift;
  return shift;
}

// The points are in ascending (step, time).
std::vector<ScalarPoint> Reference(const std::vector<ScalarPoint>& points, size_t max_points) {
  if (points.size() <= max_points) return points;
  const int shift =
      ShiftFor(points.front().step, points.back().step, static_cast<int64_t>((max_points - 1) / 3));
  std::map<int64_t, std::vector<ScalarPoint>> buckets;
  for (const ScalarPoint& point : points) buckets[BlockOf(point.step, shift)].push_back(point);
  std::vector<ScalarPoint> chosen;
  for (const auto& [key, all] : buckets) {
    std::vector<ScalarPoint> finite, others;
    for (const ScalarPoint& point : all) {
      (std::isfinite(point.value) ? finite : others).push_back(point);
    }
    const auto by_value = [](const auto& a, const auto& b) { return a.value < b.value; };
    if (!finite.empty()) {
      chosen.push_back(*std::min_element(finite.begin(), finite.end(), by_value));
      chosen.push_back(*std::max_element(finite.begin(), finite.end(), by_value));
    }
    chosen.push_back(others.empty() ? all.back() : others.front());
  }
  chosen.push_back(points.back());
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) {
    return std::tie(a.step, a.time_ns) < std::tie(b.step, b.time_ns);
  });
  chosen.erase(
      std::unique(chosen.begin(), chosen.end(),
                  [](const auto& a, const auto& b) { return PlacesOf({a}) == PlacesOf({b}); }),
      chosen.end());
  return chosen;
}

// Steps with gaps, repeats and a beginning anywhere; few distinct values, spikes, and what is not
// finite. No two points are equal in step and time.
std::vector<ScalarPoint> RandomPoints(std::mt19937_64* random, size_t count) {
  std::vector<ScalarPoint> points;
  int64_t step = static_cast<int64_t>((*random)() % 2'000'001) - 1'000'000;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t die = (*random)() % 1000;
    if (die > 100) step += 1;
    if (die > 990) step += static_cast<int64_t>((*random)() % 5000);
    double value = static_cast<double>((*random)() % 10);
    if (die % 97 == 0) value = 1e6 * static_cast<double>((*random)() % 7) - 3e6;
    if (die % 151 == 0) value = kNan;
    if (die % 251 == 0) value = die % 2 == 0 ? INFINITY : -INFINITY;
    points.push_back({step, static_cast<int64_t>(i), value});
  }
  return points;
}

TEST(ScalarSamplerTest, AgreesWithTheReferenceInWhateverOrderPointsCome) {
  std::mt19937_64 random(20'26);
  for (int round = 0; round < 200; ++round) {
    std::vector<ScalarPoint> points = RandomPoints(&random, 1 + random() % 3000);
    const size_t max_points = 4 + random() % 400;
    const std::vector<Place> expected = PlacesOf(Reference(points, max_points));
    ASSERT_LE(expected.size(), max_points);
    ASSERT_EQ(PlacesOf(Sampled(points, max_points)), expected) << "round " << round;
    std::shuffle(points.begin(), points.end(), random);
    ASSERT_EQ(PlacesOf(Sampled(points, max_points)), expected) << "shuffled, round " << round;
  }
}

TEST(ScalarSamplerTest, LosesNoSpikeAndNoNan) {
  std::vector<ScalarPoint> points;
  for (int64_t i = 0; i < 100'000; ++i) points.push_back({i, i, 1.0});
  points[31'337].value = 50;
  points[31'338].value = -50;
  points[77'777].value = kNan;
  const std::vector<ScalarPoint> chosen = Sampled(points, 1000);
  EXPECT_LE(chosen.size(), 1000u);
  EXPECT_GE(chosen.size(), 300u);
  int found = 0;
  for (const ScalarPoint& point : chosen) found += point.value == 1.0 ? 0 : 1;
  EXPECT_EQ(found, 3);
  EXPECT_EQ(chosen.back().step, 99'999);
}

TEST(ScalarSamplerTest, MorePointsMoveNoBordersUntilTheyDouble) {
  std::vector<ScalarPoint> points;
  for (int64_t i = 0; i < 5'000; ++i) points.push_back({i, i, std::sin(static_cast<double>(i))});
  std::vector<Place> before = PlacesOf(Sampled(points, 1000));
  for (int64_t i = 5'000; i < 5'010; ++i) points.push_back({i, i, 0.0});
  std::vector<Place> after = PlacesOf(Sampled(points, 1000));
  std::vector<Place> gone;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(gone));
  EXPECT_LE(gone.size(), 3u) << "only of the last bucket";
}

TEST(ScalarSamplerTest, FewPointsAreTheMostTelling) {
  const std::vector<ScalarPoint> points = {
      {0, 0, 5}, {1, 1, 9}, {2, 2, kNan}, {3, 3, 1}, {4, 4, 6}};
  const auto steps = [&](size_t max_points) {
    std::vector<int64_t> found;
    for (const ScalarPoint& point : Sampled(points, max_points)) found.push_back(point.step);
    return found;
  };
  EXPECT_THAT(steps(0), ElementsAre());
  EXPECT_THAT(steps(1), ElementsAre(4));
  EXPECT_THAT(steps(2), ElementsAre(2, 4));
  EXPECT_THAT(steps(3), ElementsAre(1, 2, 4));
  EXPECT_THAT(steps(4), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(steps(5), ElementsAre(0, 1, 2, 3, 4));
}

TEST(ScalarSamplerTest, TakesStepsOfAnySize) {
  const int64_t lowest = std::numeric_limits<int64_t>::min() + 1;
  const int64_t highest = std::numeric_limits<int64_t>::max();
  const std::vector<ScalarPoint> points = {
      {lowest, 0, 1}, {-1, 1, 2}, {0, 2, 3}, {1, 3, kNan}, {highest, 4, 5}};
  EXPECT_EQ(Sampled(points, 4).back().step, highest);
  EXPECT_EQ(Sampled(points, 4).size(), 3u)
      << "the lowest, the NaN, and the highest, which is newest";
  EXPECT_EQ(PlacesOf(Sampled(points, 5)), PlacesOf(points));
}

}  // namespace
}  // namespace tacho::server::tb
