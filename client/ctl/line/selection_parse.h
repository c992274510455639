// Which series and which steps: the small languages of --match and --steps.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// LABEL=VALUE, LABEL!=VALUE, LABEL=~REGEX or LABEL!~REGEX; the value may be empty and may contain
// anything, '=' included.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<v1::Matcher> ParseMatcher(absl::string_view text);

// "A:B" (both included), "A:", ":B", or "A" for one step. Steps may be negative.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<v1::StepRange> ParseSteps(absl::string_view text);

}  // namespace tacho::ctl
