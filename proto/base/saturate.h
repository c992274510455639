// From numbers that others sent to whole numbers. A plain cast of a double that does not fit, and a
// sum that does not fit, are undefined.
#pragma once

#include <cstdint>
#include <limits>

namespace tacho {

// `value` without its fraction, or the end of the range that is nearest to it; 0 for NaN.
template <typename Integer>
constexpr Integer SaturatingCast(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (value != value) return 0;
  // The greatest number may have no double; the one after it is a power of two.
  constexpr Integer kHalf = Limits::max() / 2 + 1;
  constexpr double kAfter = 2 * static_cast<double>(kHalf);
  if (value >= kAfter) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<Integer>(value);
}

// The same for the sum of a time in nanoseconds and so many seconds.
constexpr int64_t AddSeconds(int64_t time_ns, double seconds) {
  const auto shift = SaturatingCast<int64_t>(seconds * 1e9);
  int64_t sum = 0;
  if (!__builtin_add_overflow(time_ns, shift, &sum)) return sum;
  return shift < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace tacho
