// Columns of values of every kind, to make a store choose every encoding there is.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace tacho::storage {

struct ColumnKind {
  std::string name;
  // The value of a row; called in the order of rows, from 0.
  std::function<double(size_t row, std::mt19937_64& random)> value;
};

// Those that keep something between rows keep it in their functions: take new ones for each column.
std::vector<ColumnKind> AllColumnKinds();

std::vector<double> MakeColumn(const ColumnKind& kind, size_t rows, uint64_t seed);

}  // namespace tacho::storage
