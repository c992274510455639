#include "agent/sources/tfevents/beneath_directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

// A directory on the way was renamed just then.
constexpr int kTries = 8;

}  // namespace

int BeneathDirectory::Open(const std::string& relative, int flags) {
  if (descriptor_ < 0) {
    descriptor_ = ::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);  // NOLINT
  }
  is_missing_ = descriptor_ < 0;
  if (is_missing_) return -1;

  const int opened = OpenBeneath(relative, flags, false);
  if (opened >= 0 || (errno != EXDEV && errno != ENOSYS)) return opened;
  // An absolute link is refused even if it leads back in.
  const std::string resolved = Resolve(relative);
  if (resolved.empty()) {
    errno = EXDEV;
    return -1;
  }
  return OpenBeneath(resolved, flags, true);
}

void BeneathDirectory::Rest() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

int BeneathDirectory::OpenBeneath(const std::string& relative, int flags, bool no_links) const {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (no_links ? RESOLVE_NO_SYMLINKS : 0);
  for (int i = 0; i < kTries; ++i) {
    const int64_t opened = ::syscall(SYS_openat2, descriptor_, relative.c_str(), &how, sizeof(how));
    if (opened >= 0) return static_cast<int>(opened);
    if (errno != EAGAIN && errno != EINTR) break;
  }
  if (errno != ENOSYS || !no_links) return -1;
  // Before Linux 5.6, and in some sandboxes. `relative` was resolved just now; a directory that is
  // swapped for a link in this moment goes unnoticed.
  return ::openat(descriptor_, relative.c_str(), flags | O_CLOEXEC | O_NOFOLLOW);  // NOLINT
}

std::string BeneathDirectory::Resolve(const std::string& relative) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string root = fs::canonical(path_, error).string();
  if (error) return "";
  const std::string resolved = fs::canonical(absl::StrCat(path_, "/", relative), error).string();
  if (error) return "";
  if (resolved == root) return ".";
  const std::string below = root == "/" ? root : root + "/";
  return absl::StartsWith(resolved, below) ? resolved.substr(below.size()) : std::string();
}

}  // namespace tacho::agent
