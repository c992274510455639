// The single number in a tensorflow.TensorProto, decoded from untrusted bytes.
#pragma once

#include "absl/strings/string_view.h"

namespace tacho::client {

struct TensorNumber {
  // Whether the tensor holds exactly one number of a type that we know: float, double, half,
  // bfloat16, bool, or an integer of any width. If not, `value` means nothing.
  bool single = false;
  bool rank_zero = true;  // No dimensions; else all dimensions are 1.
  double value = 0;
};

// False if the bytes are no such message. As in TensorFlow, tensor_content goes before the typed
// lists, and a tensor of one number without either holds zero.
bool DecodeTensorNumber(absl::string_view bytes, TensorNumber* number);

}  // namespace tacho::client
