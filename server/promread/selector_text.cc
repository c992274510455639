// A scanner that goes over the text once. Every error names the place where it stands, because the
// text comes from a person who types it.
#include "server/promread/selector_text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/read_request.h"
#include "server/promread/series_labels.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;

constexpr size_t kShownBytes = 80;  // Of the selector, in an error.

bool StartsName(char c) { return c == '_' || absl::ascii_isalpha(static_cast<unsigned char>(c)); }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AddUtf8(uint32_t point, std::string* out) {
  const auto add = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      add(0xE0 | point >> 12);
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
    }
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

class SelectorScanner {
 public:
  explicit SelectorScanner(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Matcher>> Run() {
    SkipBlanks();
    if (AtName(/*colons=*/true)) {
      TACHO_RETURN_IF_ERROR(AddMetric(TakeName(/*colons=*/true), 0));
    }
    SkipBlanks();
    if (Take('{')) {
      TACHO_RETURN_IF_ERROR(ScanBraces());
    } else if (matchers_.empty()) {
      return Wrong(at_, "a metric or a '{' is missing");
    }
    SkipBlanks();
    if (at_ < text_.size()) return Wrong(at_, "a selector ends before this");
    for (const Matcher& matcher : matchers_) {
      if (!matcher.MatchesValue("")) return std::move(matchers_);
    }
    return Wrong(0, "it needs a matcher that an absent label does not fit, as {job=~\".+\"}");
  }

 private:
  absl::Status Wrong(size_t at, absl::string_view what) const {
    const bool longer = text_.size() > kShownBytes;
    return errors::ErrorOf(
        errors::Failure::kMalformed,
        absl::StrCat("at character ", at + 1, " of ", ValidUtf8(text_.substr(0, kShownBytes)),
                     longer ? "…" : "", ": ", what));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && absl::StrContains(" \t\r\n", text_[at_])) ++at_;
  }
  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AtName(bool colons) const {
    return at_ < text_.size() && (StartsName(text_[at_]) || (colons && text_[at_] == ':'));
  }
  std::string TakeName(bool colons) {
    const size_t begin = at_;
    while (AtName(colons) ||
           (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_])))) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool AtQuote() const { return at_ < text_.size() && absl::StrContains("\"'`", text_[at_]); }

  // After '{', up to its '}'.
  absl::Status ScanBraces() {
    SkipBlanks();
    while (!Take('}')) {
      TACHO_RETURN_IF_ERROR(ScanMatcher());
      SkipBlanks();
      if (Take('}')) return absl::OkStatus();
      if (!Take(',')) return Wrong(at_, "a ',' or '}' is missing");
      SkipBlanks();
    }
    return absl::OkStatus();
  }

  absl::Status ScanMatcher() {
    const size_t begin = at_;
    const bool quoted = AtQuote();
    std::string label;
    if (quoted) {
      TACHO_ASSIGN_OR_RETURN(label, TakeQuoted());
    } else if (AtName(/*colons=*/false)) {
      label = TakeName(/*colons=*/false);
    } else {
      return Wrong(at_, "the name of a label is missing");
    }
    SkipBlanks();
    const bool alone = at_ == text_.size() || text_[at_] == ',' || text_[at_] == '}';
    if (quoted && alone) return AddMetric(std::move(label), begin);
    const auto op = TakeOperator();
    if (!op.has_value()) return Wrong(at_, "one of = != =~ !~ is missing");
    SkipBlanks();
    if (!AtQuote()) return Wrong(at_, "a value in quotes is missing");
    TACHO_ASSIGN_OR_RETURN(std::string value, TakeQuoted());
    if (label == kNameLabel && named_) return Wrong(begin, "it names its metric twice");
    return Add(std::move(label), *op, std::move(value), begin);
  }

  std::optional<Matcher::Op> TakeOperator() {
    const absl::string_view rest = text_.substr(at_);
    if (absl::StartsWith(rest, "=~")) return at_ += 2, Matcher::Op::kMatches;
    if (absl::StartsWith(rest, "!~")) return at_ += 2, Matcher::Op::kNotMatches;
    if (absl::StartsWith(rest, "!=")) return at_ += 2, Matcher::Op::kNotEqual;
    if (absl::StartsWith(rest, "=")) return at_ += 1, Matcher::Op::kEqual;
    return std::nullopt;
  }

  absl::Status AddMetric(std::string name, size_t begin) {
    if (named_) return Wrong(begin, "it names its metric twice");
    for (const Matcher& matcher : matchers_) {
      if (matcher.label() == kNameLabel) return Wrong(begin, "it names its metric twice");
    }
    named_ = true;
    return Add(std::string(kNameLabel), Matcher::Op::kEqual, std::move(name), begin);
  }

  absl::Status Add(std::string label, Matcher::Op op, std::string value, size_t begin) {
    if (label.empty()) return Wrong(begin, "the name of a label is empty");
    if (matchers_.size() == static_cast<size_t>(kMaxMatchers)) {
      return errors::ErrorOf(errors::Failure::kTooLarge,
                             absl::StrCat("a selector may have ", kMaxMatchers, " matchers"));
    }
    auto matcher = Matcher::Create(std::move(label), op, std::move(value));
    if (!matcher.ok()) return Wrong(begin, ValidUtf8(matcher.status().message()));
    matchers_.push_back(*std::move(matcher));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> TakeQuoted() {
    const size_t begin = at_;
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return value;
      }
      if (quote == '`') {
        value.push_back(c);
        ++at_;
      } else if (c == '\n') {
        return Wrong(at_, "a line ends inside quotes");
      } else if (c == '\\') {
        TACHO_RETURN_IF_ERROR(TakeEscape(quote, &value));
      } else {
        value.push_back(c);
        ++at_;
      }
    }
    return Wrong(begin, "this quote has no end");
  }

  // https://go.dev/ref/spec#Rune_literals
  absl::Status TakeEscape(char quote, std::string* value) {
    const size_t begin = at_++;
    if (at_ == text_.size()) return Wrong(begin, "an escape has no end");
    const char c = text_[at_];
    constexpr absl::string_view kLetters = "abfnrtv\\";
    constexpr absl::string_view kMeant = "\a\b\f\n\r\t\v\\";
    if (const size_t which = kLetters.find(c); which != absl::string_view::npos) {
      value->push_back(kMeant[which]);
      ++at_;
      return absl::OkStatus();
    }
    if (c == quote) {
      value->push_back(c);
      ++at_;
      return absl::OkStatus();
    }
    if (c >= '0' && c <= '7') return TakeNumber(begin, 3, 8, value);
    ++at_;
    if (c == 'x') return TakeNumber(begin, 2, 16, value);
    if (c == 'u') return TakeNumber(begin, 4, 16, value);
    if (c == 'U') return TakeNumber(begin, 8, 16, value);
    return Wrong(begin, "there is no such escape; a backslash is \\\\");
  }

  // Two digits, or three octal ones, are a byte; more are a character.
  absl::Status TakeNumber(size_t begin, size_t digits, uint32_t base, std::string* value) {
    uint32_t number = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = at_ < text_.size() ? HexDigit(text_[at_]) : -1;
      if (digit < 0 || static_cast<uint32_t>(digit) >= base) {
        return Wrong(begin, absl::StrCat("this escape needs ", digits, " digits"));
      }
      number = number * base + static_cast<uint32_t>(digit);
    }
    if (digits <= 3) {
      if (number > 255) return Wrong(begin, "this escape is no byte");
      value->push_back(static_cast<char>(number));
      return absl::OkStatus();
    }
    if (number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
      return Wrong(begin, "this escape is no character");
    }
    AddUtf8(number, value);
    return absl::OkStatus();
  }

  const absl::string_view text_;
  size_t at_ = 0;
  bool named_ = false;  // By its name alone, not by a matcher on __name__.
  std::vector<Matcher> matchers_;
};

}  // namespace

absl::StatusOr<std::vector<Matcher>> ParseSelector(absl::string_view text) {
  if (text.size() > kMaxSelectorBytes) {
    return errors::ErrorOf(errors::Failure::kTooLarge,
                           absl::StrCat("a selector may have ", kMaxSelectorBytes, " bytes"));
  }
  return SelectorScanner(text).Run();
}

}  // namespace tacho::server::promread
