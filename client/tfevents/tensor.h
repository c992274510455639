// The single number in a tensorflow.TensorProto, decoded from untrusted bytes; and narrow
// floating-point numbers as doubles.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho::client {

struct TensorNumber {
  // Whether the tensor holds exactly one number of a known type: float, double, half, bfloat16,
  // bool, or an integer of any width. If not, `value` is meaningless.
  bool single = false;
  bool rank_zero = true;  // No dimensions; else all dimensions are 1.
  double value = 0;
};

// False if the bytes are malformed. As in TensorFlow, tensor_content takes precedence over the
// typed lists, and a tensor of one number without either holds zero.
bool DecodeTensorNumber(absl::string_view bytes, TensorNumber* number);

// The same number, and of a NaN the sign, the payload and whether it is quiet. A conversion by the
// processor would turn signalling NaNs into quiet ones.
double DoubleFromBits(uint64_t bits);
double WidenFloat(uint32_t bits);     // IEEE 754 binary32.
double WidenBfloat16(uint16_t bits);  // The upper half of a binary32.
double WidenHalf(uint16_t bits);      // IEEE 754 binary16.

}  // namespace tacho::client
