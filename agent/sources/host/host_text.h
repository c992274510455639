// Words and numbers of the files below /proc.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

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

}  // namespace tacho::agent
