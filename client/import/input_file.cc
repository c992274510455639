#include "client/import/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tacho::importer {
namespace {

constexpr size_t kSearchBytes = size_t{64} << 10;

absl::Status FromErrno(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", path));
}

}  // namespace

size_t StringSource::Read(char* buffer, size_t size) {
  const size_t count = std::min(size, rest_.size());
  std::memcpy(buffer, rest_.data(), count);
  rest_.remove_prefix(count);
  return count;
}

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return FromErrno(errno, path);
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    absl::Status status = FromErrno(errno, path);
    ::close(fd);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(absl::StrCat(
        path, S_ISDIR(info.st_mode) ? " is a directory, not a file" : " is no regular file"));
  }
  return std::unique_ptr<InputFile>(
      new InputFile(path, fd, static_cast<uint64_t>(info.st_size), absl::FromTimeT(info.st_mtime)));
}

InputFile::~InputFile() { ::close(fd_); }

size_t InputFile::Read(char* buffer, size_t size) {
  size = static_cast<size_t>(std::min<uint64_t>(size, size_ - position_));
  if (size == 0 || !status_.ok()) return 0;
  ssize_t got = 0;
  do {
    got = ::read(fd_, buffer, size);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    status_ = FromErrno(errno, path_);
    return 0;
  }
  position_ += static_cast<uint64_t>(got);
  return static_cast<size_t>(got);
}

bool LineReader::Next(absl::string_view* line) {
  size_t searched = begin_;
  while (!too_long_) {
    const size_t feed = buffer_.find('\n', searched);
    if (feed != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const size_t end = feed == std::string::npos ? buffer_.size() : feed;
      ended_ = feed != std::string::npos;
      *line = absl::string_view(buffer_).substr(begin_, end - begin_);
      if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
      begin_ = ended_ ? end + 1 : end;
      ++number_;
      return true;
    }
    if (at_end_) return false;
    if (buffer_.size() - begin_ > kMaxLineBytes) {
      too_long_ = true;
      break;
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    buffer_.resize(searched + kSearchBytes);
    const size_t got = source_->Read(buffer_.data() + searched, kSearchBytes);
    buffer_.resize(searched + got);
    at_end_ = got == 0;
  }
  return false;
}

absl::Status LineReader::status() const {
  if (too_long_) {
    return absl::InvalidArgumentError(absl::StrCat("line ", number_ + 1, " is longer than ",
                                                   kMaxLineBytes >> 20, " MiB: this is no text"));
  }
  return source_->status();
}

}  // namespace tacho::importer
