// Files below /proc and /sys: reading them, and the words and numbers in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

// Words and numbers of the files below /proc.

std::vector<absl::string_view> Lines(absl::string_view text);
std::vector<absl::string_view> Words(absl::string_view line);  // Separated by spaces and tabs.

// A finite number that is not negative.
std::optional<double> Number(absl::string_view word);

// For lines "key value …": which series a key is, and what its values are multiplied with.
struct KeyedMetric {
  absl::string_view key;
  Metric metric;
  double factor = 1;
};
struct KeyedMetrics {
  const KeyedMetric* begin;
  const KeyedMetric* end;
};
bool ParseKeyed(absl::string_view text, const KeyedMetrics& metrics, Sample* out);

// Reads a file below /proc or /sys. At most 4 MiB: /proc/stat of a machine with thousands of
// interrupts has some 100 kB.
//   NOT_FOUND    it cannot be opened; the text says why.
//   UNAVAILABLE  it opens and then refuses, as some do where the kernel has a feature switched off.
absl::StatusOr<std::string> ReadProcFile(const std::string& path);

}  // namespace tacho::agent
