// Numbers and times as text: exact for machines, readable for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::ctl {

// The shortest decimal that reads back as the same double; "NaN", "Infinity" or
// "-Infinity" where no decimal does (the payload of a NaN is lost).
std::string ExactNumber(double value);

// Six significant digits, whole numbers below 1e15 in full.
std::string ReadableNumber(double value);

// A column of a table: finite values of similar size get the same number of decimals, so that
// digits line up; otherwise each value is as ReadableNumber() writes it.
std::vector<std::string> ReadableColumn(const std::vector<double>& values);

// A share of a whole as "99.9 %": "100.0 %" only if it is all of it.
std::string ShareText(double ratio);
// The same without the sign.
std::string ShareNumber(double ratio);

double KilowattHours(double joules);

// "1,234,567".
std::string Thousands(uint64_t value);

// "3 tasks", "1 task".
std::string Count(uint64_t count, absl::string_view noun);

// "2026-01-31T12:00:00.123456789Z": always UTC, always nine decimals, so that text order is time
// order.
std::string ExactTime(int64_t unix_ns);

// "2026-01-31 12:00:00" in `zone`.
std::string ReadableTime(int64_t unix_ns, absl::TimeZone zone);

// A column of a table, with milliseconds only if one of the times has any.
std::vector<std::string> ReadableTimes(const std::vector<int64_t>& unix_ns, absl::TimeZone zone);

// The zone's name at `now`: "UTC", "CET", "+05".
std::string ZoneName(absl::Time now, absl::TimeZone zone);

// "850ms", "12s", "3m 20s", "2h 5m", "4d 3h".
std::string ReadableDuration(absl::Duration duration);

// "12s ago"; "in 12s" if the other clock is ahead of ours by more than a second.
std::string Age(int64_t unix_ns, absl::Time now);

}  // namespace tacho::ctl
