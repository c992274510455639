#include "server/promread/explore_request.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "proto/base/utf8.h"
#include "server/errors/error_table.h"
#include "server/promread/selector_text.h"

namespace tacho::server::promread {
namespace {

using Pairs = http::HttpRequest::Pairs;

// web/api/v1/api.go: what clients send that have no time.
constexpr absl::string_view kFirstTime = "-292273086-05-16T16:47:06Z";
constexpr absl::string_view kLastTime = "292277025-08-18T07:12:54.999999999Z";

absl::Status BadParameter(absl::string_view name, absl::string_view what) {
  return errors::ErrorOf(errors::Failure::kMalformed, absl::StrCat(name, ": ", what));
}

absl::Status WithName(absl::string_view name, const absl::Status& status) {
  return errors::ErrorOf(errors::RowOf(status).failure, absl::StrCat(name, ": ", status.message()));
}

absl::Status AddForm(const http::HttpRequest& request, Pairs* pairs) {
  if (request.method != "POST" || request.body.empty()) return absl::OkStatus();
  const absl::string_view type = request.Header("content-type");
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(type.substr(0, type.find(';'))),
                              "application/x-www-form-urlencoded")) {
    return BadParameter("Content-Type", "a POST has application/x-www-form-urlencoded");
  }
  for (const absl::string_view part : absl::StrSplit(request.body, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    auto name = http::PercentDecode(sides.first, true);
    auto value = http::PercentDecode(sides.second, true);
    if (!name.has_value() || !value.has_value()) {
      return BadParameter("the form", "a '%' is not followed by two hexadecimal digits");
    }
    pairs->emplace_back(*std::move(name), *std::move(value));
  }
  return absl::OkStatus();
}

absl::Status ReadCount(absl::string_view name, absl::string_view text, uint64_t* count) {
  if (absl::SimpleAtoi(text, count)) return absl::OkStatus();
  return BadParameter(name, "it must be a whole number from 0; 0 sets no limit");
}

}  // namespace

absl::StatusOr<int64_t> ParseTimeMs(absl::string_view text) {
  using Limits = std::numeric_limits<int64_t>;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds)) {
    const double ms = std::round(seconds * 1000);
    // 2^63 is the first that does not fit.
    if (ms >= 9223372036854775808.0) return Limits::max();
    if (ms <= -9223372036854775808.0) return Limits::min();
    return static_cast<int64_t>(ms);
  }
  if (text == kFirstTime) return Limits::min();
  if (text == kLastTime) return Limits::max();
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error) && time > absl::InfinitePast() &&
      time < absl::InfiniteFuture()) {
    return absl::ToUnixMillis(time);
  }
  return errors::ErrorOf(errors::Failure::kMalformed,
                         absl::StrCat(JsonString(text.substr(0, 80)),
                                      " is no time: it is seconds since 1970, as 1750000000.5, or "
                                      "RFC 3339, as 2025-06-15T15:06:40Z"));
}

absl::StatusOr<ExploreRequest> ReadExploreRequest(const http::HttpRequest& request) {
  Pairs pairs = request.query;
  TACHO_RETURN_IF_ERROR(AddForm(request, &pairs));
  ExploreRequest asked;
  asked.everything.begin_ms = std::numeric_limits<int64_t>::min();
  asked.everything.end_ms = std::numeric_limits<int64_t>::max();
  size_t matchers = 0;
  for (const auto& [name, value] : pairs) {
    if (name == "start" || name == "end") {
      if (value.empty()) continue;
      const auto time = ParseTimeMs(value);
      if (!time.ok()) return WithName(name, time.status());
      (name == "start" ? asked.everything.begin_ms : asked.everything.end_ms) = *time;
    } else if (name == "limit") {
      TACHO_RETURN_IF_ERROR(ReadCount(name, value, &asked.limit));
    } else if (name == "limit_per_metric") {
      TACHO_RETURN_IF_ERROR(ReadCount(name, value, &asked.limit_per_metric));
    } else if (name == "metric") {
      asked.metric = value;
    } else if (name == "match[]") {
      auto selector = ParseSelector(value);
      if (!selector.ok()) return WithName(name, selector.status());
      for (const storage::Matcher& matcher : *selector) {
        if (IsUtf8(matcher.label()) && IsUtf8(matcher.value())) continue;
        return BadParameter(name, "a name or a value is no UTF-8, as all that are stored are");
      }
      matchers += selector->size();
      if (asked.selectors.size() == static_cast<size_t>(kMaxQueries) ||
          matchers > static_cast<size_t>(kMaxMatchers)) {
        return errors::ErrorOf(errors::Failure::kTooLarge,
                               absl::StrCat("match[]: a request may have ", kMaxQueries,
                                            " of them, with ", kMaxMatchers, " matchers together"));
      }
      asked.selectors.push_back({.matchers = *std::move(selector)});
    }
  }
  if (asked.everything.end_ms < asked.everything.begin_ms) {
    return BadParameter("end", "it must not be before start");
  }
  for (ReadQuery& query : asked.selectors) {
    query.begin_ms = asked.everything.begin_ms;
    query.end_ms = asked.everything.end_ms;
  }
  return asked;
}

}  // namespace tacho::server::promread
