// The rules for names and texts that agents and people send (proto/tacho/v1/types.proto).
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::ingest {

// Bytes; each is stated in the proto.
inline constexpr size_t kMaxJobBytes = 256;
inline constexpr size_t kMaxHostBytes = 256;
inline constexpr size_t kMaxMetricNameBytes = 256;
inline constexpr size_t kMaxUnitBytes = 63;
inline constexpr size_t kMaxHelpBytes = 1024;
inline constexpr size_t kMaxLabelNameBytes = 128;
inline constexpr size_t kMaxLabelValueBytes = 1024;

bool IsControl(char c);  // An ASCII control character.

// Each returns what is wrong, or an empty string.
std::string ControlProblem(absl::string_view text);  // Finds control characters.
std::string TextProblem(absl::string_view text, size_t min_bytes, size_t max_bytes);
std::string MetricNameProblem(absl::string_view name);  // A text without control characters.
std::string LabelNameProblem(absl::string_view name);   // Also refuses the reserved names.
std::string LabelValueProblem(absl::string_view value);

}  // namespace tacho::server::ingest
