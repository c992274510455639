#include "client/ctl/text/time_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tacho::ctl {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::string TwoUnits(int64_t large, const char* large_name, int64_t small, const char* small_name) {
  if (small == 0) return absl::StrCat(large, large_name);
  return absl::StrCat(large, large_name, " ", small, small_name);
}

}  // namespace

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
