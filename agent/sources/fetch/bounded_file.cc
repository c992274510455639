#include "agent/sources/fetch/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace tacho::agent {

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, uint64_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, "open");
  struct stat about = {};
  absl::Status status;
  if (::fstat(fd, &about) != 0) {
    status = absl::ErrnoToStatus(errno, "stat");
  } else if (!S_ISREG(about.st_mode)) {
    status = absl::InvalidArgumentError("no regular file");
  }
  std::string text;
  char buffer[16 << 10];
  while (status.ok()) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = absl::ErrnoToStatus(errno, "read");
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      status = absl::ResourceExhaustedError(absl::StrCat("it has more than ", max_bytes, " bytes"));
    }
  }
  ::close(fd);
  if (!status.ok()) return status;
  return text;
}

}  // namespace tacho::agent
