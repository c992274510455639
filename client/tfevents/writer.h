// Writes event files of scalars, as TensorBoard reads them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::client {

struct ScalarEvent {
  double wall_time = 0;  // Seconds since the Unix epoch.
  int64_t step = 0;
  absl::string_view tag;
  uint32_t value_bits = 0;  // A float32's bits.
};

// The first record of a file: its version.
std::string FirstRecord(double wall_time);
// As a simple_value, which every reader of event files accepts.
void AppendScalar(const ScalarEvent& event, std::string* file);

// The nearest float32; for a NaN, the sign and the upper bits of the payload. Sets *exact if
// widening it again gives the same bits.
uint32_t NarrowToFloat(double value, bool* exact);

// The nearest double. If unix_ns came from UnixNsOfWallTime(), that returns the same time again.
double WallTimeOfUnixNs(int64_t unix_ns);

}  // namespace tacho::client
