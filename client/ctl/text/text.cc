#include "client/ctl/text/text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tacho::ctl {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string Printable(absl::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are the C1 controls, C2 80 to C2 9F in UTF-8.
    const bool c1 = byte == 0xC2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                    static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) ++i;
    clean += c1 || byte < 0x20 || byte == 0x7F ? '?' : text[i];
  }
  return clean;
}

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  for (const char c : text) {
    if (!IsContinuation(c)) ++width;
  }
  return width;
}

std::string Shorten(absl::string_view text, size_t width, bool unicode) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t seen = 0;
  size_t end = 0;
  while (end < text.size()) {
    if (!IsContinuation(text[end]) && seen++ == width - 1) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + (unicode ? "…" : "~");
}

std::vector<std::string> Wrap(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const bool fits = !lines.empty() &&
                      (width == 0 || DisplayWidth(lines.back()) + 1 + DisplayWidth(word) <= width);
    if (fits) {
      absl::StrAppend(&lines.back(), " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    absl::StrAppend(&line, i == 0 ? "" : ",", CsvField(fields[i]));
  }
  return line + "\r\n";
}

}  // namespace tacho::ctl
