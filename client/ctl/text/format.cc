#include "client/ctl/text/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tacho::ctl {
namespace {

constexpr int kSignificantDigits = 6;
// Above this a double's whole numbers are better read with an exponent.
constexpr double kWholeBelow = 1e15;

std::string NonFinite(double value) {
  if (std::isnan(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

bool IsWhole(double value) { return value == std::trunc(value) && std::fabs(value) < kWholeBelow; }

// Decimals that suit all of `values`, or -1 if they differ too much in size.
int CommonDecimals(const std::vector<double>& values) {
  double largest = 0;
  double smallest = HUGE_VAL;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    whole = whole && IsWhole(value);
    if (value == 0) continue;
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
  if (whole) return 0;
  // Beyond a factor of 1,000 the small ones would lose the digits that matter.
  if (largest >= 1e9 || smallest < 1e-4 || largest / smallest > 1e3) return -1;
  const int magnitude = static_cast<int>(std::floor(std::log10(largest)));
  return std::clamp(kSignificantDigits - 1 - magnitude, 0, 8);
}

constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::string TwoUnits(int64_t large, const char* large_name, int64_t small, const char* small_name) {
  if (small == 0) return absl::StrCat(large, large_name);
  return absl::StrCat(large, large_name, " ", small, small_name);
}

}  // namespace

std::string ExactNumber(double value) {
  if (!std::isfinite(value)) return NonFinite(value);
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, result.ptr};
}

std::string ReadableNumber(double value) {
  if (!std::isfinite(value)) return NonFinite(value);
  if (IsWhole(value)) return absl::StrFormat("%.0f", value == 0 ? 0 : value);
  return absl::StrFormat("%.*g", kSignificantDigits, value);
}

std::vector<std::string> ReadableColumn(const std::vector<double>& values) {
  const int decimals = CommonDecimals(values);
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const double value : values) {
    if (decimals < 0 || !std::isfinite(value)) {
      texts.push_back(ReadableNumber(value));
    } else {
      texts.push_back(absl::StrFormat("%.*f", decimals, value == 0 ? 0 : value));
    }
  }
  return texts;
}

std::string Thousands(uint64_t value) {
  std::string text = absl::StrCat(value);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

double KilowattHours(double joules) { return joules / 3.6e6; }

std::string ShareNumber(double ratio) {
  constexpr double kAlmostAll = 0.999;
  return absl::StrFormat("%.1f", 100 * (ratio < 1 ? std::min(ratio, kAlmostAll) : ratio));
}

std::string ShareText(double ratio) { return absl::StrCat(ShareNumber(ratio), " %"); }

std::string Count(uint64_t count, absl::string_view noun) {
  return absl::StrCat(Thousands(count), " ", noun, count == 1 ? "" : "s");
}

std::string ExactTime(int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", absl::FromUnixNanos(unix_ns),
                          absl::UTCTimeZone());
}

std::string ReadableTime(int64_t unix_ns, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(unix_ns), zone);
}

std::vector<std::string> ReadableTimes(const std::vector<int64_t>& unix_ns, absl::TimeZone zone) {
  const bool whole = std::all_of(unix_ns.begin(), unix_ns.end(),
                                 [](int64_t time) { return time % kNanosPerSecond == 0; });
  std::vector<std::string> texts;
  texts.reserve(unix_ns.size());
  for (const int64_t time : unix_ns) {
    texts.push_back(absl::FormatTime(whole ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M:%E3S",
                                     absl::FromUnixNanos(time), zone));
  }
  return texts;
}

std::string ZoneName(absl::Time now, absl::TimeZone zone) {
  return absl::FormatTime("%Z", now, zone);
}

std::string ReadableDuration(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", ReadableDuration(-duration));
  if (duration < absl::Seconds(1)) {
    return absl::StrCat(absl::ToInt64Milliseconds(duration), "ms");
  }
  const int64_t seconds = absl::ToInt64Seconds(duration);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return TwoUnits(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86400) return TwoUnits(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return TwoUnits(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

std::string Age(int64_t unix_ns, absl::Time now) {
  const absl::Duration age = now - absl::FromUnixNanos(unix_ns);
  if (age < -absl::Seconds(1)) return absl::StrCat("in ", ReadableDuration(-age));
  if (age < absl::Seconds(1)) return "just now";
  return absl::StrCat(ReadableDuration(age), " ago");
}

}  // namespace tacho::ctl
