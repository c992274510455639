// Follows a file to which lines are appended, over rotation, and goes on where it was after a
// restart.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tacho::agent {

// One thread.
class LineTail {
 public:
  // No log has a longer line; one that is longer is passed over and counted.
  static constexpr size_t kMaxLineBytes = size_t{1} << 20;
  static constexpr size_t kReadBytes = 64 << 10;  // At a time.

  // `place` is what place() once said, or empty.
  LineTail(std::string path, absl::string_view place);
  LineTail(const LineTail&) = delete;
  LineTail& operator=(const LineTail&) = delete;
  ~LineTail();

  // Reads on if nothing is left of what was read. OK also if there is nothing new, or no file yet.
  //   others  the file cannot be opened or read.
  absl::Status Read();
  // The next line, without its end, that has one: what a writer has not ended is left until it has.
  // It stays until the next call of Next() or Read(). False: Read() again.
  bool Next(absl::string_view* line);
  // Whether the last Read() brought bytes: there may be more.
  bool more() const { return more_; }
  // Behind the last line that Next() returned: "inode offset".
  std::string place() const;
  uint64_t too_long() const { return too_long_; }  // Lines passed over.

 private:
  absl::Status Open();
  void Close();
  // Whether `path_` is another file by now, or has been cut.
  bool IsRotated() const;

  const std::string path_;
  int fd_ = -1;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;        // Where buffer_[at_] is in the file.
  uint64_t wanted_inode_ = 0;  // Inode of the place given; 0: none.
  uint64_t wanted_offset_ = 0;
  std::string buffer_;
  size_t at_ = 0;
  bool skipping_ = false;  // Within a line that is too long.
  bool more_ = false;
  uint64_t too_long_ = 0;
};

}  // namespace tacho::agent
