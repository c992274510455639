#include "client/ctl/text/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

// Brackets nested deeper than this stay on one line: rows are easier to read and to grep.
constexpr size_t kBreakDepth = 4;

bool IsContinuation(absl::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

// Length of the valid UTF-8 sequence at `at`, 0 if there is none.
size_t SequenceLength(absl::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const unsigned char second =
      at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : '\0';
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return IsContinuation(text, at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && second < 0xA0) return 0;   // Overlong.
    if (first == 0xED && second >= 0xA0) return 0;  // Surrogates.
    return IsContinuation(text, at + 1) && IsContinuation(text, at + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && second < 0x90) return 0;   // Overlong.
    if (first == 0xF4 && second >= 0x90) return 0;  // Above U+10FFFF.
    return IsContinuation(text, at + 1) && IsContinuation(text, at + 2) &&
                   IsContinuation(text, at + 3)
               ? 4
               : 0;
  }
  return 0;
}

void AppendEscaped(std::string& json, char c) {
  switch (c) {
    case '"':
      json += "\\\"";
      return;
    case '\\':
      json += "\\\\";
      return;
    case '\n':
      json += "\\n";
      return;
    case '\t':
      json += "\\t";
      return;
    case '\r':
      json += "\\r";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 0x20 || byte == 0x7F) {
    absl::StrAppendFormat(&json, "\\u%04x", static_cast<unsigned>(byte));
  } else {
    json += c;
  }
}

}  // namespace

std::string ValidUtf8(absl::string_view text) {
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
    absl::StrAppend(&valid,
                    length == 0 ? absl::string_view("\xEF\xBF\xBD") : text.substr(at, length));
    at += length == 0 ? 1 : length;
  }
  return valid;
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
    if (length == 1) {
      AppendEscaped(json, text[at]);
    } else if (length == 0) {
      json += "\xEF\xBF\xBD";
    } else {
      absl::StrAppend(&json, text.substr(at, length));
    }
    at += length == 0 ? 1 : length;
  }
  return json + "\"";
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_members_.empty()) return;
  if (has_members_.back()) out_ << ',';
  if (!one_line_ && has_members_.size() <= kBreakDepth) {
    out_ << '\n' << std::string(2 * has_members_.size(), ' ');
  } else if (has_members_.back()) {
    out_ << ' ';
  }
  has_members_.back() = true;
}

void JsonWriter::Begin(char bracket) {
  Separate();
  out_ << bracket;
  has_members_.push_back(false);
}

void JsonWriter::End(char bracket) {
  const bool had_members = has_members_.back();
  const size_t depth = has_members_.size();
  has_members_.pop_back();
  if (had_members && !one_line_ && depth <= kBreakDepth)
    out_ << '\n' << std::string(2 * (depth - 1), ' ');
  out_ << bracket;
  if (has_members_.empty()) out_ << '\n';
}

void JsonWriter::Key(absl::string_view name) {
  Separate();
  out_ << JsonString(name) << ": ";
  after_key_ = true;
}

void JsonWriter::String(absl::string_view value) {
  Separate();
  out_ << JsonString(value);
}

void JsonWriter::Int(int64_t value) {
  Separate();
  out_ << absl::StrCat(value);
}

void JsonWriter::Uint(uint64_t value) {
  Separate();
  out_ << absl::StrCat(value);
}

void JsonWriter::Double(double value) {
  Separate();
  const std::string number = ExactNumber(value);
  out_ << (std::isfinite(value) ? number : JsonString(number));
}

void JsonWriter::Bool(bool value) {
  Separate();
  out_ << (value ? "true" : "false");
}

void JsonWriter::Null() {
  Separate();
  out_ << "null";
}

void JsonWriter::TimeFields(absl::string_view name, int64_t unix_ns) {
  Key(name);
  String(ExactTime(unix_ns));
  Key(absl::StrCat(name, "_unix_ns"));
  Int(unix_ns);
}

}  // namespace tacho::ctl
