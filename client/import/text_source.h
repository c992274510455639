// Text as UTF-8, whatever form of Unicode a program on Windows wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/import/input_file.h"

namespace tacho::importer {

// Appends the code point, which is at most U+10FFFF.
void AppendUtf8(uint32_t code, std::string* text);

// Passes on the bytes of another source: UTF-16 with a byte order mark as UTF-8, as the output of
// PowerShell needs, and UTF-8 without its mark. Half of a surrogate pair becomes U+FFFD. Used from
// one thread.
class TextSource : public ByteSource {
 public:
  explicit TextSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  size_t Read(char* buffer, size_t size) override;
  absl::Status status() const override { return source_->status(); }

 private:
  enum class Form { kUnknown, kBytes, kUtf16Little, kUtf16Big };

  void Begin();
  bool Fill();
  void TakeUnit(uint32_t unit);

  const std::unique_ptr<ByteSource> source_;
  Form form_ = Form::kUnknown;
  std::string raw_;    // UTF-16 that is not decoded: at most one byte.
  std::string ready_;  // Not returned yet, from at_ on.
  size_t at_ = 0;
  uint32_t high_ = 0;  // The first half of a pair.
};

// The same of bytes in memory.
std::string TextOfBytes(absl::string_view bytes);

}  // namespace tacho::importer
