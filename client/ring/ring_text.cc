#include "client/ring/ring_text.h"

#include <algorithm>

namespace tacho::client {
namespace {

constexpr size_t kMaxJobInFileName = 128;  // File names end at 255 bytes.

bool IsControl(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

bool IsContinuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return size;
}

}  // namespace

bool IsCleanText(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    if (size == 0 || IsControl(static_cast<unsigned char>(text[0]))) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string CleanText(std::string_view text, size_t max_bytes) {
  std::string clean;
  clean.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const size_t size = CharacterBytes(text);
    if (clean.size() + std::max<size_t>(size, 1) > max_bytes) break;
    if (size == 0) {
      clean += '?';
    } else if (IsControl(static_cast<unsigned char>(text[0]))) {
      clean += ' ';
    } else {
      clean += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return clean;
}

std::string RingFileName(std::string_view job, uint32_t task, uint32_t pid, uint32_t copy) {
  std::string name(job.substr(0, kMaxJobInFileName));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-') c = '_';
  }
  name += "." + std::to_string(task) + "." + std::to_string(pid);
  if (copy != 0) name += "-" + std::to_string(copy);
  return name + ".ring";
}

}  // namespace tacho::client
