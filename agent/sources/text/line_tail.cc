#include "agent/sources/text/line_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tacho::agent {

LineTail::LineTail(std::string path, absl::string_view place) : path_(std::move(path)) {
  const std::vector<absl::string_view> words = absl::StrSplit(place, ' ');
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &wanted_inode_) ||
      !absl::SimpleAtoi(words[1], &wanted_offset_)) {
    wanted_inode_ = 0;
  }
}

LineTail::~LineTail() { Close(); }

void LineTail::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  buffer_.clear();
  at_ = 0;
  offset_ = 0;
  skipping_ = false;
}

absl::Status LineTail::Open() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return errno == ENOENT ? absl::OkStatus() : absl::ErrnoToStatus(errno, path_);
  struct stat about = {};
  if (::fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode)) {
    Close();
    return absl::InvalidArgumentError(absl::StrCat(path_, " is no regular file"));
  }
  inode_ = about.st_ino;
  // Where an earlier run ended; another file, or a shorter one, begins anew.
  if (wanted_inode_ == inode_ && wanted_offset_ <= static_cast<uint64_t>(about.st_size)) {
    offset_ = wanted_offset_;
  }
  wanted_inode_ = 0;
  return absl::OkStatus();
}

bool LineTail::IsRotated() const {
  struct stat now = {};
  // If the name is gone, the open file may still grow.
  if (::stat(path_.c_str(), &now) != 0) return false;
  return now.st_ino != inode_ ||
         static_cast<uint64_t>(now.st_size) < offset_ + (buffer_.size() - at_);
}

absl::Status LineTail::Read() {
  more_ = false;
  if (fd_ < 0) {
    if (absl::Status status = Open(); !status.ok() || fd_ < 0) return status;
  }
  buffer_.erase(0, at_);
  at_ = 0;
  // Asked before reading: what is written to the old file until it is rotated is read below.
  const bool rotated = IsRotated();
  const size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  const ssize_t got =
      ::pread(fd_, buffer_.data() + had, kReadBytes, static_cast<off_t>(offset_ + had));
  buffer_.resize(had + static_cast<size_t>(got > 0 ? got : 0));
  if (got < 0) return errno == EINTR ? absl::OkStatus() : absl::ErrnoToStatus(errno, path_);
  more_ = got > 0;
  if (got == 0 && rotated) {
    // Nobody will complete the line behind the last line feed of the old file.
    Close();
    more_ = true;
  }
  return absl::OkStatus();
}

bool LineTail::Next(absl::string_view* line) {
  for (;;) {
    const size_t end = buffer_.find('\n', at_);
    if (end == std::string::npos) {
      if (buffer_.size() - at_ > kMaxLineBytes) {
        if (!std::exchange(skipping_, true)) ++too_long_;
        offset_ += buffer_.size() - at_;
        at_ = buffer_.size();
      }
      return false;
    }
    const absl::string_view whole = absl::string_view(buffer_).substr(at_, end - at_);
    offset_ += whole.size() + 1;
    at_ = end + 1;
    if (std::exchange(skipping_, false)) continue;
    if (whole.size() > kMaxLineBytes) {
      ++too_long_;
      continue;
    }
    *line = whole;
    return true;
  }
}

std::string LineTail::place() const {
  return fd_ < 0 ? std::string() : absl::StrCat(inode_, " ", offset_);
}

}  // namespace tacho::agent
