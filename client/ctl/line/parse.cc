// Parses what users type: durations, times, steps, matchers, JOB@ATTEMPT. Errors name the text
// and show what was expected.
#include "client/ctl/line/parse.h"

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

bool IsLabelName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
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

absl::StatusOr<v1::Matcher> ParseMatcher(absl::string_view text) {
  const size_t at = text.find_first_of("=!");
  const absl::string_view name = text.substr(0, at);
  absl::string_view rest = at == absl::string_view::npos ? "" : text.substr(at);
  v1::Matcher matcher;
  if (absl::ConsumePrefix(&rest, "=~")) {
    matcher.set_op(v1::Matcher::OP_MATCHES);
  } else if (absl::ConsumePrefix(&rest, "!~")) {
    matcher.set_op(v1::Matcher::OP_NOT_MATCHES);
  } else if (absl::ConsumePrefix(&rest, "!=")) {
    matcher.set_op(v1::Matcher::OP_NOT_EQUAL);
  } else if (absl::ConsumePrefix(&rest, "=")) {
    matcher.set_op(v1::Matcher::OP_EQUAL);
  }
  if (matcher.op() == v1::Matcher::OP_UNSPECIFIED || !IsLabelName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': expected LABEL=VALUE, LABEL!=VALUE, LABEL=~REGEX or LABEL!~REGEX, like "
                     "task=0 or 'host=~web-.*'"));
  }
  matcher.set_label(std::string(name));
  matcher.set_value(std::string(rest));
  return matcher;
}

absl::StatusOr<v1::StepRange> ParseSteps(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("'", text, "': expected steps like 100:200 (both included), 100:, :200 or 150"));
  const size_t colon = text.find(':');
  const absl::string_view first = text.substr(0, colon);
  const absl::string_view last = colon == absl::string_view::npos ? first : text.substr(colon + 1);
  v1::StepRange range;
  int64_t step = 0;
  if (!first.empty()) {
    if (!absl::SimpleAtoi(first, &step)) return bad;
    range.set_begin(step);
  }
  if (!last.empty()) {
    if (!absl::SimpleAtoi(last, &step)) return bad;
    range.set_end(step);
  }
  if (!range.has_begin() && !range.has_end()) return bad;
  if (range.has_begin() && range.has_end() && range.begin() > range.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': the first step is above the last"));
  }
  return range;
}

std::string SubjectName::Text() const {
  if (attempt) return absl::StrCat(job, "@", *attempt);
  return ParseSubject(job).job == job ? job : absl::StrCat(job, "@");
}

SubjectName ParseSubject(absl::string_view text) {
  const size_t at = text.rfind('@');
  if (at == absl::string_view::npos || at == 0) return {std::string(text), std::nullopt};
  const absl::string_view job = text.substr(0, at);
  const absl::string_view number = text.substr(at + 1);
  if (number.empty()) return {std::string(job), std::nullopt};
  uint32_t attempt = 0;
  const bool is_number = absl::ascii_isdigit(static_cast<unsigned char>(number[0])) &&
                         absl::SimpleAtoi(number, &attempt);
  if (!is_number) return {std::string(text), std::nullopt};
  return {std::string(job), attempt};
}

}  // namespace tacho::ctl
