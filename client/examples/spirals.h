// A data set that a linear model cannot learn: points on two interleaved spirals, with noise.
#pragma once

#include <cstdint>
#include <vector>

namespace tacho::example {

struct Point {
  float x = 0;
  float y = 0;
  int label = 0;  // Which spiral.
};

// `count` points drawn with the seed; another seed draws other points of the same two spirals.
std::vector<Point> MakeSpirals(int count, uint64_t seed);

}  // namespace tacho::example
