#include "client/ctl/line/time_parse.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr absl::string_view kExpectedTime =
    "expected a time like 2026-01-31T12:00:00Z, 2026-01-31, '2026-01-31 12:00', 1769860800 "
    "(seconds since 1970), '2h ago', today, yesterday or now";
constexpr absl::string_view kExpectedDuration =
    "expected a duration like 90s, 15m, 1h30m, 2d or 1w";

std::optional<absl::Duration> UnitOf(absl::string_view name) {
  if (name == "w") return absl::Hours(24 * 7);
  if (name == "d") return absl::Hours(24);
  if (name == "h") return absl::Hours(1);
  if (name == "m" || name == "min") return absl::Minutes(1);
  if (name == "s") return absl::Seconds(1);
  if (name == "ms") return absl::Milliseconds(1);
  if (name == "us") return absl::Microseconds(1);
  if (name == "ns") return absl::Nanoseconds(1);
  return std::nullopt;
}

// Takes what `wanted` accepts off the front of `text`.
template <typename Wanted>
absl::string_view TakeWhile(absl::string_view& text, Wanted wanted) {
  size_t length = 0;
  while (length < text.size() && wanted(static_cast<unsigned char>(text[length]))) ++length;
  const absl::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

bool AllDigits(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return !text.empty();
}

// "1769860800.123456789" without going through a double, which would lose the nanoseconds.
std::optional<absl::Time> ParseUnixSeconds(absl::string_view text) {
  const size_t dot = text.find('.');
  const absl::string_view whole = text.substr(0, dot);
  std::string fraction;
  if (dot != absl::string_view::npos) {
    fraction = std::string(text.substr(dot + 1));
    if (!AllDigits(fraction) || fraction.size() > 9) return std::nullopt;
  }
  int64_t seconds = 0;
  if (!AllDigits(whole) || !absl::SimpleAtoi(whole, &seconds)) return std::nullopt;
  fraction.resize(9, '0');
  int64_t nanoseconds = 0;
  if (!absl::SimpleAtoi(fraction, &nanoseconds)) return std::nullopt;
  return absl::FromUnixSeconds(seconds) + absl::Nanoseconds(nanoseconds);
}

std::optional<absl::Time> ParseCalendar(absl::string_view text, absl::TimeZone zone) {
  // A bare number would pass as a year.
  if (!absl::StrContains(text, '-')) return std::nullopt;
  absl::Time time;
  std::string error;
  const std::string copy(text);
  if (absl::ParseTime(absl::RFC3339_full, copy, &time, &error)) return time;
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M",
                             "%Y-%m-%dT%H:%M:%E*S"}) {
    if (absl::ParseTime(format, copy, zone, &time, &error)) return time;
  }
  return std::nullopt;
}

absl::Time Midnight(absl::Time now, absl::TimeZone zone, int days_before) {
  return absl::FromCivil(absl::ToCivilDay(now, zone) - days_before, zone);
}

absl::StatusOr<absl::Time> Checked(absl::Time time, absl::string_view text) {
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (time < absl::UnixEpoch() || time > absl::FromUnixNanos(kMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is outside 1970 to 2262, which nanoseconds can hold"));
  }
  return time;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  const absl::Status bad =
      absl::InvalidArgumentError(absl::StrCat("'", text, "': ", kExpectedDuration));
  absl::string_view rest = text;
  absl::Duration total;
  while (!rest.empty()) {
    const absl::string_view number =
        TakeWhile(rest, [](unsigned char c) { return absl::ascii_isdigit(c) || c == '.'; });
    const std::optional<absl::Duration> unit =
        UnitOf(TakeWhile(rest, [](unsigned char c) { return absl::ascii_isalpha(c); }));
    double count = 0;
    if (number.empty() || !absl::SimpleAtod(number, &count) || !unit) return bad;
    int64_t whole = 0;
    total += absl::SimpleAtoi(number, &whole) ? *unit * whole : *unit * count;
  }
  if (total <= absl::ZeroDuration() || total == absl::InfiniteDuration()) return bad;
  return total;
}

absl::StatusOr<absl::Time> ParseTime(absl::string_view text, absl::Time now, absl::TimeZone zone) {
  absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  if (trimmed == "now") return now;
  if (trimmed == "today") return Midnight(now, zone, 0);
  if (trimmed == "yesterday") return Midnight(now, zone, 1);
  absl::string_view before = trimmed;
  if (absl::ConsumeSuffix(&before, "ago")) {
    TACHO_ASSIGN_OR_RETURN(const absl::Duration age,
                           ParseDuration(absl::StripAsciiWhitespace(before)));
    return Checked(now - age, text);
  }
  absl::ConsumePrefix(&trimmed, "@");
  if (const auto time = ParseUnixSeconds(trimmed)) return Checked(*time, text);
  if (const auto time = ParseCalendar(trimmed, zone)) return Checked(*time, text);
  return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", kExpectedTime));
}

}  // namespace tacho::ctl
