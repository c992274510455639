// Numbers and times as logs spell them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::importer {

// A decimal number, to the nearest double; or NaN and infinity as Python, C and tachoctl spell them
// in any case: "nan", "NaN", "inf", "-Infinity", and "NaN(0x7ff8000000000123)" for a NaN of these
// bits. nullopt if it is anything else.
std::optional<double> ParseNumber(absl::string_view text);

// The text that ParseNumber() reads back to the same bits: the shortest decimal, "NaN", "Infinity",
// "-Infinity", and "NaN(0x…)" for every NaN but the usual one, 0x7ff8000000000000.
std::string NumberText(double value);

std::optional<int64_t> ParseInteger(absl::string_view text);  // Also "12.0" and "1e3".

enum class TimeUnit {
  kGuess,  // By size: below 10¹¹ seconds, below 10¹⁴ ms, below 10¹⁷ µs, else ns.
  kSeconds,
  kMillis,
  kMicros,
  kNanos,
};
// ns since the Unix epoch, from a decimal number of units (exact; what is finer than 1 ns is cut)
// or from a date and time as RFC 3339 or "2026-01-31 12:00:00.25", which is in `zone`, also with
// slashes, as nvidia-smi writes it. nullopt if it is neither, or outside of 1970 to 2262.
std::optional<int64_t> ParseTimeNs(absl::string_view text, TimeUnit unit, absl::TimeZone zone);

// Which unit a name stands for: "time_ms", "timestamp_unix_ns", …; kGuess if it says nothing.
TimeUnit UnitOfName(absl::string_view name);

}  // namespace tacho::importer
