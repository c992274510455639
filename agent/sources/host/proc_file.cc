#include "agent/sources/host/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace tacho::agent {
namespace {

constexpr size_t kMaxFileBytes = size_t{4} * 1024 * 1024;

}  // namespace

absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::NotFoundError(std::generic_category().message(errno));
  std::string text;
  char buffer[16 * 1024];
  ssize_t got = 0;
  do {
    got = ::read(fd, buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  } while (text.size() < kMaxFileBytes && (got > 0 || (got < 0 && errno == EINTR)));
  const int error = errno;
  ::close(fd);
  if (got < 0) return absl::UnavailableError(std::generic_category().message(error));
  return text;
}

}  // namespace tacho::agent
