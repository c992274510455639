// The small languages of the command line: times, durations, steps, matchers, JOB[@ATTEMPT].
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// A positive duration in w, d, h, m, s, ms, us, ns: "90s", "1h30m", "250ms", "2d", "1w".
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// A time within the range of int64 nanoseconds since 1970. One of
//   "now", "today", "yesterday" (their midnight in `zone`), "2h ago"
//   RFC 3339: "2026-01-31T12:00:00.25Z", "2026-01-31T12:00:00+01:00"
//   in `zone`: "2026-01-31", "2026-01-31 12:00", "2026-01-31 12:00:00.25"; "T" for the space too
//   seconds since 1970, exact to the nanosecond: "1769860800", "1769860800.123456789"
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<absl::Time> ParseTime(absl::string_view text, absl::Time now, absl::TimeZone zone);

// LABEL=VALUE, LABEL!=VALUE, LABEL=~REGEX or LABEL!~REGEX; the value may be empty and may contain
// anything, '=' included.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<v1::Matcher> ParseMatcher(absl::string_view text);

// "A:B" (both inclusive), "A:", ":B", or "A" for one step. Steps may be negative.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<v1::StepRange> ParseSteps(absl::string_view text);

// A run that 'plot', 'compare' or 'report' names.
struct SubjectName {
  std::string job;
  std::optional<uint32_t> attempt;

  // As the user typed it.
  std::string Text() const;
};

// A number after the last '@' is the attempt. An empty text after it means no attempt, so that
// "a@1@" is the job "a@1". Any other text is the name of a job.
SubjectName ParseSubject(absl::string_view text);

}  // namespace tacho::ctl
