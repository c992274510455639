// Reads UTF-8. Needs the C++ library alone, because trainers link it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacho {

struct Utf8Character {
  size_t bytes = 1;    // 1 if the text begins with no character: one byte is wrong.
  uint32_t code = 0;   // The code point.
  bool valid = false;  // False: no UTF-8, an overlong form, a surrogate or beyond U+10FFFF.
};

// The character that a text begins with. `size` is not 0.
constexpr Utf8Character FirstUtf8(const char* text, size_t size) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || size < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    code = code << 6 | (byte & 0x3f);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {bytes, code, true};
}

// `View`: std::string, std::string_view or absl::string_view. An empty text is UTF-8.
template <typename View>
bool IsUtf8(const View& view) {
  const char* text = view.data();
  size_t left = view.size();
  // Nearly all text is ASCII, which one look at eight bytes shows.
  for (uint64_t word = 0; left >= sizeof(word); text += sizeof(word), left -= sizeof(word)) {
    std::memcpy(&word, text, sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
  }
  while (left > 0) {
    const Utf8Character first = FirstUtf8(text, left);
    if (!first.valid) return false;
    text += first.bytes;
    left -= first.bytes;
  }
  return true;
}

inline bool IsUtf8(const char* text) { return IsUtf8(std::string_view(text)); }

}  // namespace tacho
