#include "client/import/text_source.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"

namespace tacho::importer {
namespace {

constexpr size_t kDecodeBytes = size_t{64} << 10;
constexpr uint32_t kReplacement = 0xFFFD;

}  // namespace

void AppendUtf8(uint32_t code, std::string* text) {
  const auto byte = [text](uint32_t value) { text->push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

size_t TextSource::Read(char* buffer, size_t size) {
  if (form_ == Form::kUnknown) Begin();
  while (at_ == ready_.size() && form_ != Form::kBytes) {
    if (!Fill()) return 0;
  }
  if (at_ == ready_.size()) return source_->Read(buffer, size);
  const size_t count = std::min(size, ready_.size() - at_);
  std::memcpy(buffer, ready_.data() + at_, count);
  at_ += count;
  return count;
}

void TextSource::Begin() {
  constexpr size_t kLongestMark = 3;
  char mark[kLongestMark];
  while (ready_.size() < kLongestMark) {
    const size_t got = source_->Read(mark, kLongestMark - ready_.size());
    if (got == 0) break;
    ready_.append(mark, got);
  }
  form_ = Form::kBytes;
  if (absl::StartsWith(ready_, "\xEF\xBB\xBF")) {
    ready_.clear();
  } else if (absl::StartsWith(ready_, "\xFF\xFE") || absl::StartsWith(ready_, "\xFE\xFF")) {
    form_ = ready_[0] == '\xFF' ? Form::kUtf16Little : Form::kUtf16Big;
    raw_ = ready_.substr(2);
    ready_.clear();
  }
}

// Decodes some more. False at the end.
bool TextSource::Fill() {
  ready_.clear();
  at_ = 0;
  const size_t old = raw_.size();
  raw_.resize(old + kDecodeBytes);
  const size_t got = source_->Read(raw_.data() + old, kDecodeBytes);
  raw_.resize(old + got);
  size_t done = 0;
  for (; done + 2 <= raw_.size(); done += 2) {
    const auto first = static_cast<unsigned char>(raw_[done]);
    const auto second = static_cast<unsigned char>(raw_[done + 1]);
    TakeUnit(form_ == Form::kUtf16Little ? first | second << 8 : first << 8 | second);
  }
  raw_.erase(0, done);
  if (got > 0) return true;
  // A half of something at the very end.
  if (high_ != 0 || !raw_.empty()) AppendUtf8(kReplacement, &ready_);
  high_ = 0;
  raw_.clear();
  return !ready_.empty();
}

void TextSource::TakeUnit(uint32_t unit) {
  const bool is_low = unit >= 0xDC00 && unit < 0xE000;
  if (high_ != 0 && is_low) {
    AppendUtf8(0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00), &ready_);
    high_ = 0;
    return;
  }
  if (high_ != 0) AppendUtf8(kReplacement, &ready_);
  high_ = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
  if (high_ == 0) AppendUtf8(is_low ? kReplacement : unit, &ready_);
}

std::string TextOfBytes(absl::string_view bytes) {
  TextSource source(std::make_unique<StringSource>(bytes));
  std::string text;
  char buffer[4096];
  while (const size_t got = source.Read(buffer, sizeof(buffer))) text.append(buffer, got);
  return text;
}

}  // namespace tacho::importer
