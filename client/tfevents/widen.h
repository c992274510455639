// Narrow floating-point numbers as doubles: the same number, and of a NaN the sign, the payload and
// whether it is quiet. A conversion by the processor would turn signalling NaNs into quiet ones.
#pragma once

#include <cstdint>

namespace tacho::client {

double DoubleFromBits(uint64_t bits);
double WidenFloat(uint32_t bits);     // IEEE 754 binary32.
double WidenBfloat16(uint16_t bits);  // The upper half of a binary32.
double WidenHalf(uint16_t bits);      // IEEE 754 binary16.

}  // namespace tacho::client
