#include "client/ctl/text/text.h"

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

}  // namespace tacho::ctl
