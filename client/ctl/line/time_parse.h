// Times and durations as a person types them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::ctl {

// "90s", "1h30m", "250ms", "2d", "1w": positive, of w, d, h, m, s, ms, us, ns.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// A time within the range of int64 nanoseconds since 1970. One of
//   "now", "today", "yesterday" (their midnight in `zone`), "2h ago"
//   RFC 3339: "2026-01-31T12:00:00.25Z", "2026-01-31T12:00:00+01:00"
//   in `zone`: "2026-01-31", "2026-01-31 12:00", "2026-01-31 12:00:00.25"; "T" for the space too
//   seconds since 1970, exact to the nanosecond: "1769860800", "1769860800.123456789"
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<absl::Time> ParseTime(absl::string_view text, absl::Time now, absl::TimeZone zone);

}  // namespace tacho::ctl
