#include "client/tfevents/widen.h"

#include <cmath>
#include <cstring>

namespace tacho::client {

double DoubleFromBits(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

double WidenFloat(uint32_t bits) {
  const uint64_t sign = uint64_t{bits >> 31} << 63;
  const uint64_t fraction = bits & 0x7fffff;
  if ((bits >> 23 & 0xff) == 0xff) {
    return DoubleFromBits(sign | uint64_t{0x7ff} << 52 | fraction << 29);
  }
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

double WidenBfloat16(uint16_t bits) { return WidenFloat(uint32_t{bits} << 16); }

double WidenHalf(uint16_t bits) {
  const uint64_t sign = uint64_t{bits} >> 15 << 63;
  const int exponent = bits >> 10 & 0x1f;
  const uint64_t fraction = bits & 0x3ff;
  if (exponent == 0x1f) return DoubleFromBits(sign | uint64_t{0x7ff} << 52 | fraction << 42);
  // A subnormal has no hidden bit and the exponent of the smallest normal number.
  const double magnitude = exponent == 0
                               ? std::ldexp(static_cast<double>(fraction), -24)
                               : std::ldexp(static_cast<double>(fraction | 0x400), exponent - 25);
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace tacho::client
