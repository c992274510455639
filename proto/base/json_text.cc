#include "proto/base/json_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/utf8.h"

namespace tacho {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

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
  while (!text.empty()) {
    const Utf8Character first = FirstUtf8(text.data(), text.size());
    absl::StrAppend(&valid, first.valid ? text.substr(0, first.bytes) : kReplacement);
    text.remove_prefix(first.bytes);
  }
  return valid;
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const Utf8Character first = FirstUtf8(text.data(), text.size());
    if (!first.valid) {
      absl::StrAppend(&json, kReplacement);
    } else if (first.bytes == 1) {
      AppendEscaped(json, text[0]);
    } else {
      absl::StrAppend(&json, text.substr(0, first.bytes));
    }
    text.remove_prefix(first.bytes);
  }
  return json + "\"";
}

bool IsJsonNested(absl::string_view json, int levels) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      if (++depth > levels) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace tacho
