#include "client/examples/spirals.h"

#include <cmath>
#include <numbers>
#include <random>

namespace tacho::example {

std::vector<Point> MakeSpirals(int count, uint64_t seed) {
  constexpr float kTurns = 1.5F;
  constexpr float kNoise = 0.02F;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> along(0.08F, 1.0F);
  std::normal_distribution<float> noise(0.0F, kNoise);
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const int label = i % 2;
    const float t = std::sqrt(along(random));  // As dense outside as inside.
    const float angle =
        2.0F * std::numbers::pi_v<float> * kTurns * t + std::numbers::pi_v<float> * float(label);
    const float x = t * std::cos(angle) + noise(random);
    const float y = t * std::sin(angle) + noise(random);
    points.push_back({x, y, label});
  }
  return points;
}

}  // namespace tacho::example
