#include "proto/base/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status_macros.h"

namespace tacho::config {
namespace {

class OpenFile {
 public:
  // Does not wait if it is a pipe that nobody writes to.
  explicit OpenFile(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}  // NOLINT: variadic
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CheckMode(const std::string& path, mode_t mode, FileTrust trust) {
  if (trust != FileTrust::kPublic && (mode & S_IWOTH) != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s may be written by everybody (mode %04o): chmod o-w %s", path, mode & 07777, path));
  }
  if (trust == FileTrust::kSecret && (mode & S_IROTH) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("%s may be read by everybody (mode %04o), and is a secret: chmod o-r %s",
                        path, mode & 07777, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path, size_t max_bytes) {
  std::string text(max_bytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadCheckedFile(const std::string& path, FileTrust trust,
                                            size_t max_bytes) {
  const OpenFile file(path);
  if (file.fd() < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  }
  TACHO_RETURN_IF_ERROR(CheckMode(path, info.st_mode, trust));
  auto text = ReadAll(file.fd(), path, max_bytes);
  if (!text.ok()) return text.status();
  if (text->empty()) return absl::InvalidArgumentError(absl::StrCat(path, " is empty"));
  if (text->size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is larger than ", max_bytes, " bytes: is it the right file?"));
  }
  return text;
}

}  // namespace tacho::config
