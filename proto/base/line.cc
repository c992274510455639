#include "proto/base/line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/base/utf8.h"

namespace tacho::log {
namespace {

constexpr absl::string_view kLevelNames[] = {"debug", "info", "warn", "error"};

// Whether every terminal shows the character as it is, at its place in the line.
bool IsShown(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr Range kHidden[] = {
      {0x00, 0x1f},     {0x7f, 0x9f},         // Control.
      {0xad, 0xad},     {0x61c, 0x61c},       // Soft hyphen; direction.
      {0x200b, 0x200f}, {0x2028, 0x202e},     // Without width, direction, line separators.
      {0x2060, 0x206f}, {0xfeff, 0xfeff},     // The same.
      {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};  // Annotations, tags.
  return std::none_of(std::begin(kHidden), std::end(kHidden), [code](const Range& hidden) {
    return code >= hidden.first && code <= hidden.last;
  });
}

void AppendEscaped(Format format, const Utf8Character& character, char byte, std::string* out) {
  const uint32_t code = character.code;
  const bool json = format == Format::kJson;
  if (!character.valid && json) {
    absl::StrAppend(out, "\\ufffd");  // JSON has only characters.
  } else if (!character.valid) {
    absl::StrAppendFormat(out, "\\x%02x", static_cast<uint8_t>(byte));
  } else if (code == '\n') {
    absl::StrAppend(out, "\\n");
  } else if (code == '\t') {
    absl::StrAppend(out, "\\t");
  } else if (code > 0xffff && json) {
    absl::StrAppendFormat(out, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                          0xdc00 + (code & 0x3ff));
  } else if (code > 0xffff) {
    absl::StrAppendFormat(out, "\\U%08x", code);
  } else {
    absl::StrAppendFormat(out, "\\u%04x", code);
  }
}

// The first part of `text` that has at most `bytes` bytes and no torn character at its end.
absl::string_view Cut(absl::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > bytes - 3 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

void AppendQuoted(Format format, absl::string_view text, size_t max_bytes, std::string* out) {
  const absl::string_view kept = Cut(text, max_bytes);
  out->push_back('"');
  for (size_t at = 0; at < kept.size();) {
    const Utf8Character character = FirstUtf8(kept.data() + at, kept.size() - at);
    if (!character.valid || !IsShown(character.code)) {
      AppendEscaped(format, character, kept[at], out);
    } else {
      if (character.code == '"' || character.code == '\\') out->push_back('\\');
      out->append(kept.data() + at, character.bytes);
    }
    at += character.bytes;
  }
  if (kept.size() < text.size()) {
    absl::StrAppend(out, "… (+", text.size() - kept.size(), " bytes)");
  }
  out->push_back('"');
}

// Nothing in it needs quotes.
bool IsPlain(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxValueBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
         });
}

void AppendText(Format format, absl::string_view text, std::string* out) {
  if (format == Format::kLogfmt && IsPlain(text)) {
    absl::StrAppend(out, text);
  } else {
    AppendQuoted(format, text, kMaxValueBytes, out);
  }
}

void AppendNumber(Format format, double number, std::string* out) {
  const std::string text = absl::StrFormat("%g", number);
  // JSON has neither NaN nor infinity.
  if (format == Format::kJson && !std::isfinite(number)) return AppendText(format, text, out);
  absl::StrAppend(out, text);
}

void AppendValue(Format format, const Field::Value& value, std::string* out) {
  if (const auto* text = std::get_if<absl::string_view>(&value)) {
    AppendText(format, *text, out);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    absl::StrAppend(out, *integer);
  } else if (const auto* natural = std::get_if<uint64_t>(&value)) {
    absl::StrAppend(out, *natural);
  } else if (const auto* number = std::get_if<double>(&value)) {
    AppendNumber(format, *number, out);
  } else {
    absl::StrAppend(out, std::get<bool>(value) ? "true" : "false");
  }
}

}  // namespace

absl::string_view NameOf(Level level) { return kLevelNames[static_cast<int>(level)]; }

std::optional<Level> LevelNamed(absl::string_view name) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError}) {
    if (NameOf(level) == name) return level;
  }
  return std::nullopt;
}

Format FormatNamed(absl::string_view name) {
  return name == "json" ? Format::kJson : Format::kLogfmt;
}

std::string FormatLine(Format format, absl::Time time, Level level, absl::string_view message,
                       std::span<const Field> fields) {
  const std::string when = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  const bool json = format == Format::kJson;
  std::string line =
      json ? absl::StrCat("{\"time\":\"", when, "\",\"level\":\"", NameOf(level), "\",\"msg\":")
           : absl::StrCat("time=", when, " level=", NameOf(level), " msg=");
  AppendQuoted(format, message, kMaxMessageBytes, &line);
  for (const Field& field : fields) {
    json ? absl::StrAppend(&line, ",\"", field.key, "\":")
         : absl::StrAppend(&line, " ", field.key, "=");
    AppendValue(format, field.value, &line);
  }
  absl::StrAppend(&line, json ? "}\n" : "\n");
  return line;
}

}  // namespace tacho::log
