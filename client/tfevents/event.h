// Decodes what a scalar log needs from the messages in event files (tensorflow.Event, Summary,
// TensorProto). The bytes are untrusted.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace tacho::client {

struct TfEvent {
  double wall_time = 0;  // Seconds since the Unix epoch. 0 if the event has none.
  int64_t step = 0;
  bool session_start = false;  // The event is the SessionLog START of a writer that (re)starts.
};

// One value of a summary.
struct TfValue {
  enum class Kind {
    kSimple,  // TF1, PyTorch, JAX: a float that needs no metadata to be a scalar.
    kTensor,  // A tensor with one number; its plugin decides whether it is a scalar.
    kOther,   // Histogram, image, text, several numbers, nothing at all.
  };
  absl::string_view tag;  // Any bytes.
  Kind kind = Kind::kOther;
  double value = 0;       // Widened to double without loss; 64-bit integers to the nearest double.
  bool rank_zero = true;  // For a tensor: it has no dimensions.
  absl::string_view plugin;   // From the metadata; empty if there is none.
  bool scalar_class = false;  // The metadata says DATA_CLASS_SCALAR.
};

// Decodes one Event and calls `visit` for each value of its summary. `visit` may read `event`; the
// value's views point into `payload`. False if the bytes are malformed; `visit` has then been
// called for the values before the malformed byte.
bool DecodeTfEvent(absl::string_view payload, TfEvent* event,
                   absl::FunctionRef<void(const TfValue&)> visit);

// ns since the Unix epoch: floor(w) × 10⁹ + round((w - floor(w)) × 10⁹), the product in double and
// halves rounded up. (The seconds are split off first because w × 10⁹ as a double has a resolution
// of 256 ns today.) nullopt if w is not finite or the result is outside [0, INT64_MAX].
std::optional<int64_t> UnixNsOfWallTime(double wall_time);

}  // namespace tacho::client
