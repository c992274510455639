// Values that are n / d for integers n and one d: integers (d = 1), decimals (d a power of ten),
// means of d samples, fractions of a batch.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/codec/bit_stream.h"

namespace tacho::storage {

// The bits of a value as an integer that is larger the larger the value is, so that neighbours
// differ by 1; and back.
inline int64_t Ordered(double value) {
  const auto bits = std::bit_cast<int64_t>(value);
  return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}
inline double FromOrdered(int64_t ordered) {
  return std::bit_cast<double>(ordered ^
                               static_cast<int64_t>(static_cast<uint64_t>(ordered >> 63) >> 1));
}
inline int32_t OrderedFloat(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ static_cast<int32_t>(static_cast<uint32_t>(bits >> 31) >> 1);
}
inline float FromOrderedFloat(int32_t ordered) {
  return std::bit_cast<float>(ordered ^
                              static_cast<int32_t>(static_cast<uint32_t>(ordered >> 31) >> 1));
}

// Rounds each value to the nearest float.
void RoundToFloats(std::span<double> values);
// Whether that would change none, to the bit.
bool AllFloats(std::span<const double> values);

// Divisors are at most this.
constexpr uint64_t kMaxQuotientDivisor = 1'000'000'000'000'000;
// Bits of an integer that the encoder makes: a double holds as many with one to spare.
constexpr int64_t kMaxQuotient = int64_t{1} << 51;

struct QuotientForm {
  uint64_t divisor = 1;
  bool floats = false;  // The quotient is rounded to a float.
  // Values may be a few neighbours away from the quotient, as sums of decimals are.
  bool near = false;

  // The value that is so many neighbours away.
  double Near(double quotient, int64_t steps) const {
    if (floats) {
      return static_cast<double>(FromOrderedFloat(
          static_cast<int32_t>(static_cast<uint32_t>(OrderedFloat(static_cast<float>(quotient))) +
                               static_cast<uint32_t>(steps))));
    }
    return FromOrdered(static_cast<int64_t>(static_cast<uint64_t>(Ordered(quotient)) +
                                            static_cast<uint64_t>(steps)));
  }
};

// Values in a form. A value that is not of the form is an exception: its integer repeats the one
// before (0 at the start).
struct Quotients {
  explicit Quotients(size_t size) : integers(size), steps(size) {}

  // Replaces all by those of the values, as many as this was made for; false if more than a quarter
  // are exceptions.
  bool Assign(std::span<const double> values, const QuotientForm& form);
  bool AnySteps();

  Scratch<int64_t> integers;
  Scratch<int64_t> steps;           // From the quotient to the value; unset unless `near`.
  std::vector<int64_t> exceptions;  // Rows.
};

// The form that most of the values have, if any; `floats` says that all of them are floats. Whether
// some are only near it, AnySteps() says so.
std::optional<QuotientForm> FindQuotientForm(std::span<const double> values, bool floats);

}  // namespace tacho::storage
