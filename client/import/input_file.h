// Reads a file once from its beginning, with bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::importer {

// Bytes in order.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads up to `size` bytes; returns 0 at the end, and after an error, which status() returns.
  virtual size_t Read(char* buffer, size_t size) = 0;
  virtual absl::Status status() const { return absl::OkStatus(); }
};

class StringSource : public ByteSource {
 public:
  explicit StringSource(absl::string_view bytes) : rest_(bytes) {}
  size_t Read(char* buffer, size_t size) override;

 private:
  absl::string_view rest_;
};

// Used from one thread.
class InputFile : public ByteSource {
 public:
  //   NOT_FOUND, PERMISSION_DENIED, …  as the system says; the text names the file.
  //   INVALID_ARGUMENT                 it is not a regular file.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() override;

  size_t Read(char* buffer, size_t size) override;
  absl::Status status() const override { return status_; }

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // At the opening. No more than that is read.
  uint64_t position() const { return position_; }
  absl::Time changed() const { return changed_; }

 private:
  InputFile(std::string path, int fd, uint64_t size, absl::Time changed)
      : path_(std::move(path)), fd_(fd), size_(size), changed_(changed) {}

  const std::string path_;
  const int fd_;
  const uint64_t size_;
  const absl::Time changed_;
  uint64_t position_ = 0;
  absl::Status status_;
};

// Splits a source into lines. Used from one thread.
class LineReader {
 public:
  // No log has a longer line; a file that has one is not text.
  static constexpr size_t kMaxLineBytes = size_t{4} << 20;

  explicit LineReader(ByteSource* source) : source_(source) {}

  // The next line without its end (LF or CRLF); it stays valid until the next call. False at the
  // end, and after an error, which status() returns.
  bool Next(absl::string_view* line);
  // The number of the last line, from 1.
  uint64_t number() const { return number_; }
  // Whether the last line had an end.
  bool ended() const { return ended_; }
  //   INVALID_ARGUMENT  a line is too long.
  //   others            as the source's status().
  absl::Status status() const;

 private:
  ByteSource* const source_;
  std::string buffer_;
  size_t begin_ = 0;  // Where the bytes begin that were not returned yet.
  uint64_t number_ = 0;
  bool at_end_ = false;
  bool ended_ = false;
  bool too_long_ = false;
};

}  // namespace tacho::importer
