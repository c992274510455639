// Times as text: exact for machines, readable for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::ctl {

// "2026-01-31T12:00:00.123456789Z": always UTC, always nine decimals, so that text order is time
// order.
std::string ExactTime(int64_t unix_ns);

// "2026-01-31 12:00:00" in `zone`.
std::string ReadableTime(int64_t unix_ns, absl::TimeZone zone);

// A column of a table: milliseconds only if one of the times has any.
std::vector<std::string> ReadableTimes(const std::vector<int64_t>& unix_ns, absl::TimeZone zone);

// "UTC", "CET", "+05": what the zone is called now.
std::string ZoneName(absl::Time now, absl::TimeZone zone);

// "850ms", "12s", "3m 20s", "2h 5m", "4d 3h".
std::string ReadableDuration(absl::Duration duration);

// "12s ago"; "in 12s" for a clock that runs ahead of ours by more than a second.
std::string Age(int64_t unix_ns, absl::Time now);

}  // namespace tacho::ctl
