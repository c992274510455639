#include "client/ctl/line/selection_parse.h"

#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::ctl {
namespace {

bool IsLabelName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace

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

}  // namespace tacho::ctl
