// Parses numbers and times as logs write them. NaN payloads and nanoseconds go through integers,
// because a double would lose bits of them.
#include "client/import/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace tacho::importer {
namespace {

constexpr uint64_t kUsualNan = 0x7ff8000000000000;
constexpr int64_t kMaxNs = std::numeric_limits<int64_t>::max();

double FromBits(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint64_t ToBits(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// "NaN(0x…)" of bits that are a NaN's.
std::optional<double> ParseNanBits(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "NaN(0x") || !absl::ConsumeSuffix(&text, ")"))
    return std::nullopt;
  uint64_t bits = 0;
  if (text.size() != 16 || !absl::SimpleHexAtoi(text, &bits)) return std::nullopt;
  const double value = FromBits(bits);
  // Not through the value: a signalling NaN may become a quiet one when it is handed on.
  if (!std::isnan(value)) return std::nullopt;
  return value;
}

bool AllDigits(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isdigit(c); });
}

int NsDigits(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kSeconds:
      return 9;
    case TimeUnit::kMillis:
      return 6;
    case TimeUnit::kMicros:
      return 3;
    case TimeUnit::kNanos:
    case TimeUnit::kGuess:
      break;
  }
  return 0;
}

TimeUnit Guess(absl::string_view whole) {
  const size_t digits = whole.size() - std::min(whole.find_first_not_of('0'), whole.size());
  if (digits <= 11) return TimeUnit::kSeconds;
  if (digits <= 14) return TimeUnit::kMillis;
  return digits <= 17 ? TimeUnit::kMicros : TimeUnit::kNanos;
}

// "1769860800.25" by its digits, because a double has no room for nanoseconds.
std::optional<int64_t> ParseDecimalTime(absl::string_view text, TimeUnit unit) {
  const size_t dot = text.find('.');
  const absl::string_view whole = text.substr(0, dot);
  const absl::string_view rest = dot == absl::string_view::npos ? "" : text.substr(dot + 1);
  if (whole.empty() || whole.size() > 19 || !AllDigits(whole) || !AllDigits(rest)) {
    return std::nullopt;
  }
  const int digits = NsDigits(unit == TimeUnit::kGuess ? Guess(whole) : unit);
  std::string fraction(rest.substr(0, digits));
  fraction.resize(digits, '0');
  absl::uint128 ns = 0;
  for (const char c : absl::StrCat(whole, fraction)) ns = ns * 10 + static_cast<uint64_t>(c - '0');
  if (ns > static_cast<uint64_t>(kMaxNs)) return std::nullopt;
  return static_cast<int64_t>(ns);
}

std::optional<int64_t> ParseFloatTime(absl::string_view text, TimeUnit unit) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value < 0) return std::nullopt;
  if (unit == TimeUnit::kGuess) {
    unit = value < 1e11   ? TimeUnit::kSeconds
           : value < 1e14 ? TimeUnit::kMillis
           : value < 1e17 ? TimeUnit::kMicros
                          : TimeUnit::kNanos;
  }
  const long double ns = std::floor(static_cast<long double>(value) *
                                    std::pow(10.0L, static_cast<long double>(NsDigits(unit))));
  if (ns >= static_cast<long double>(kMaxNs)) return std::nullopt;
  return static_cast<int64_t>(ns);
}

std::optional<int64_t> ParseCalendar(absl::string_view text, absl::TimeZone zone) {
  // A bare number would pass as a year.
  if (!absl::StrContains(text, '-') && !absl::StrContains(text, '/')) return std::nullopt;
  absl::Time time;
  std::string error;
  const std::string copy(text);
  bool found = absl::ParseTime(absl::RFC3339_full, copy, &time, &error);
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S%Ez", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S",
                             "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y/%m/%d %H:%M:%E*S"}) {
    found = found || absl::ParseTime(format, copy, zone, &time, &error);
  }
  if (!found || time < absl::UnixEpoch() || time > absl::FromUnixNanos(kMaxNs)) return std::nullopt;
  return absl::ToUnixNanos(time);
}

}  // namespace

std::optional<double> ParseNumber(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text.size() > 400) return std::nullopt;
  double value = 0;
  const size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
  if (text.size() == sign) return std::nullopt;
  const auto first = static_cast<unsigned char>(text[sign]);
  if (absl::ascii_isdigit(first) || first == '.') {
    // Abseil reads hexadecimal numbers too, which no log means.
    const bool decimal = text.find_first_not_of("0123456789.eE+-") == absl::string_view::npos;
    if (decimal && absl::SimpleAtod(text, &value)) return value;
    return std::nullopt;
  }
  if (auto bits = ParseNanBits(text)) return bits;
  const bool negative = text[0] == '-';
  text.remove_prefix(sign);
  if (absl::EqualsIgnoreCase(text, "nan")) return FromBits(kUsualNan | uint64_t{negative} << 63);
  if (absl::EqualsIgnoreCase(text, "inf") || absl::EqualsIgnoreCase(text, "infinity")) {
    return negative ? -HUGE_VAL : HUGE_VAL;
  }
  return std::nullopt;
}

std::string NumberText(double value) {
  const uint64_t bits = ToBits(value);
  if (std::isnan(value)) {
    return bits == kUsualNan ? "NaN" : absl::StrFormat("NaN(0x%016x)", bits);
  }
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, result.ptr};
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  const std::optional<double> value = ParseNumber(text);
  constexpr double kExact = 9007199254740992;  // Above it a double leaves integers out.
  if (!value || !(std::fabs(*value) <= kExact) || *value != std::trunc(*value)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<int64_t> ParseTimeNs(absl::string_view text, TimeUnit unit, absl::TimeZone zone) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty() || text.size() > 64) return std::nullopt;
  if (auto ns = ParseDecimalTime(text, unit)) return ns;
  if (auto ns = ParseCalendar(text, zone)) return ns;
  return absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ? ParseFloatTime(text, unit)
                                                                  : std::nullopt;
}

TimeUnit UnitOfName(absl::string_view name) {
  if (absl::EndsWithIgnoreCase(name, "_ns")) return TimeUnit::kNanos;
  if (absl::EndsWithIgnoreCase(name, "_us")) return TimeUnit::kMicros;
  if (absl::EndsWithIgnoreCase(name, "_ms")) return TimeUnit::kMillis;
  if (absl::EndsWithIgnoreCase(name, "_s") || absl::EndsWithIgnoreCase(name, "_seconds")) {
    return TimeUnit::kSeconds;
  }
  return TimeUnit::kGuess;
}

}  // namespace tacho::importer
