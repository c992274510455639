#include "client/ring/ring_text.h"

#include <algorithm>

#include "proto/base/utf8.h"

namespace tacho::client {
namespace {

constexpr size_t kMaxJobInFileName = 128;  // File names end at 255 bytes.

bool IsControl(uint32_t code) { return code < 0x20 || code == 0x7f; }

}  // namespace

bool IsCleanText(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character first = FirstUtf8(text.data(), text.size());
    if (!first.valid || IsControl(first.code)) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

std::string CleanText(std::string_view text, size_t max_bytes) {
  std::string clean;
  clean.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const Utf8Character first = FirstUtf8(text.data(), text.size());
    if (clean.size() + first.bytes > max_bytes) break;
    if (!first.valid) {
      clean += '?';
    } else if (IsControl(first.code)) {
      clean += ' ';
    } else {
      clean += text.substr(0, first.bytes);
    }
    text.remove_prefix(first.bytes);
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
