// Splits lines of Prometheus and OpenMetrics text into names, labels and values. Both formats share
// these rules; what differs is in the two readers.
#include "proto/exposition/exposition_scanner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace tacho {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

bool IsNameByte(char c, bool first, bool colon) {
  if (c == '_' || absl::ascii_isalpha(static_cast<unsigned char>(c))) return true;
  if (c == ':') return colon;
  return !first && absl::ascii_isdigit(static_cast<unsigned char>(c));
}

bool IsName(absl::string_view name, bool colon) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsNameByte(name[i], i == 0, colon)) return false;
  }
  return true;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Only digits, and at least one if `some`.
bool IsDigits(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// Digits as a number; at the end of int64 if there are too many.
int64_t Saturated(absl::string_view digits) {
  int64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) return std::numeric_limits<int64_t>::max();
  return number;
}

}  // namespace

bool IsMetricName(absl::string_view name) { return IsName(name, true); }
bool IsLabelName(absl::string_view name) { return IsName(name, false); }

size_t CodePoints(absl::string_view utf8) {
  size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

std::optional<double> ParseExpositionNumber(absl::string_view word) {
  absl::string_view number = word;
  const bool negative = absl::ConsumePrefix(&number, "-");
  if (!negative) absl::ConsumePrefix(&number, "+");
  if (number.empty()) return std::nullopt;
  double value = 0;
  if (absl::EqualsIgnoreCase(number, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (absl::EqualsIgnoreCase(number, "inf") || absl::EqualsIgnoreCase(number, "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else {
    // from_chars takes "inf(…)" and a second sign, which a digit or a point excludes.
    if (number[0] != '.' && !absl::ascii_isdigit(static_cast<unsigned char>(number[0]))) {
      return std::nullopt;
    }
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    if (parsed.ptr != number.data() + number.size()) return std::nullopt;
    if (parsed.ec == std::errc::result_out_of_range) {
      // Too small is zero, too large infinite; only the exponent shows which of the two it is.
      const size_t e = number.find_first_of("eE");
      const bool small = e != absl::string_view::npos && number.substr(e + 1, 1) == "-";
      value = small ? 0 : std::numeric_limits<double>::infinity();
    } else if (parsed.ec != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -value : value;
}

std::optional<int64_t> ParseSecondsAsNs(absl::string_view word) {
  constexpr double kLargest = 9.2e18;
  absl::string_view digits = word;
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (!negative) absl::ConsumePrefix(&digits, "+");
  const size_t point = std::min(digits.find('.'), digits.size());
  const absl::string_view whole = digits.substr(0, point);
  absl::string_view fraction = digits.substr(std::min(point + 1, digits.size()));
  if (whole.empty() || !IsDigits(whole) || !IsDigits(fraction)) {
    // With an exponent: to the nearest double.
    const std::optional<double> value = ParseExpositionNumber(word);
    if (!value || !std::isfinite(*value)) return std::nullopt;
    const double ns = *value * static_cast<double>(kNsPerSecond);
    if (ns >= kLargest) return std::numeric_limits<int64_t>::max();
    if (ns <= -kLargest) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(ns);
  }
  constexpr size_t kDecimals = 9;
  std::string nanos(fraction.substr(0, kDecimals));
  nanos.resize(kDecimals, '0');
  const int64_t seconds = Saturated(whole);
  if (seconds > std::numeric_limits<int64_t>::max() / kNsPerSecond - 1) {
    return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  const int64_t ns = seconds * kNsPerSecond + Saturated(nanos);
  return negative ? -ns : ns;
}

bool ExpositionScanner::TakeByte(char byte) {
  if (rest_.empty() || rest_[0] != byte) return false;
  rest_.remove_prefix(1);
  return true;
}

void ExpositionScanner::SkipBlanks() {
  if (!lenient_) return;
  while (!rest_.empty() && IsBlank(rest_[0])) rest_.remove_prefix(1);
}

absl::string_view ExpositionScanner::TakeName() {
  size_t length = 0;
  while (length < rest_.size() && IsNameByte(rest_[length], length == 0, true)) ++length;
  const absl::string_view name = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return name;
}

absl::string_view ExpositionScanner::TakeWord() {
  size_t length = 0;
  while (length < rest_.size() && !IsBlank(rest_[length])) ++length;
  const absl::string_view word = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return word;
}

absl::Status ExpositionScanner::TakeLabels(ExpositionSample::Labels* labels, std::string* name) {
  if (!TakeByte('{')) return absl::InvalidArgumentError("'{' expected");
  SkipBlanks();
  for (bool first = true; !TakeByte('}'); first = false) {
    if (!first && !TakeByte(',')) {
      return absl::InvalidArgumentError("',' or '}' expected after a label");
    }
    SkipBlanks();
    if (!first && lenient_ && TakeByte('}')) break;  // A comma after the last one.
    TACHO_RETURN_IF_ERROR(TakeLabel(first, labels, name));
    SkipBlanks();
  }
  return absl::OkStatus();
}

absl::Status ExpositionScanner::TakeLabel(bool first, ExpositionSample::Labels* labels,
                                          std::string* name) {
  std::string key;
  if (lenient_ && !rest_.empty() && rest_[0] == '"') {
    TACHO_RETURN_IF_ERROR(TakeQuoted(&key));
    SkipBlanks();
    if (first && !absl::StartsWith(rest_, "=")) {
      if (!name->empty()) return absl::InvalidArgumentError("the metric has two names");
      if (key.empty()) return absl::InvalidArgumentError("the metric's name is empty");
      *name = std::move(key);
      return absl::OkStatus();
    }
  } else {
    key = std::string(TakeName());
    if (!IsLabelName(key)) {
      return absl::InvalidArgumentError("a label's name is not of [a-zA-Z_][a-zA-Z0-9_]*");
    }
  }
  if (key == "__name__") return absl::InvalidArgumentError("a label cannot be named __name__");
  for (const auto& [known, value] : *labels) {
    if (known == key) return absl::InvalidArgumentError(absl::StrCat("label ", key, " twice"));
  }
  if (labels->size() == limits_.max_labels) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", limits_.max_labels, " labels on one sample"));
  }
  SkipBlanks();
  if (!TakeByte('=')) return absl::InvalidArgumentError("'=' expected after a label's name");
  SkipBlanks();
  std::string value;
  TACHO_RETURN_IF_ERROR(TakeQuoted(&value));
  labels->emplace_back(std::move(key), std::move(value));
  return absl::OkStatus();
}

absl::Status ExpositionScanner::TakeQuoted(std::string* text) {
  if (!TakeByte('"')) return absl::InvalidArgumentError("a value in double quotes expected");
  while (!rest_.empty()) {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    if (c == '"') return absl::OkStatus();
    if (c != '\\') {
      text->push_back(c);
      continue;
    }
    if (rest_.empty()) break;
    const char escaped = rest_[0];
    rest_.remove_prefix(1);
    if (escaped == 'n') {
      text->push_back('\n');
    } else if (escaped == '\\' || escaped == '"') {
      text->push_back(escaped);
    } else if (lenient_) {
      return absl::InvalidArgumentError("a backslash before anything but \\, \" and n");
    } else {
      text->append({'\\', escaped});  // OpenMetrics leaves it as it is.
    }
  }
  return absl::InvalidArgumentError("a quoted text has no end on its line");
}

std::string UnescapeHelp(absl::string_view text, bool quotes_too) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == '\\' && (next == 'n' || next == '\\' || (quotes_too && next == '"'))) {
      plain.push_back(next == 'n' ? '\n' : next);
      ++i;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

}  // namespace tacho
