#include "agent/requests/stacks_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "agent/requests/kernel_stacks.h"
#include "agent/sources/host/host_text.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

constexpr absl::string_view kMagic = "tacho-stacks 1 ";
constexpr size_t kMaxFirstLine = 32;
// The handler writes a line at a time, and takes milliseconds for all.
constexpr absl::Duration kQuiet = absl::Milliseconds(60);
constexpr absl::Duration kGlance = absl::Milliseconds(10);

}  // namespace

absl::StatusOr<StacksFile> StacksFile::Open(const std::string& ring) {
  const std::string path = ring + ".stacks";
  constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = open(path.c_str(), O_RDWR | kFlags);
  if (fd < 0 && errno != ENOENT) fd = open(path.c_str(), O_RDONLY | kFlags);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, errno == ENOENT
                                          ? "the trainer does not allow it: tacho.init(stacks=True)"
                                          : absl::StrCat("cannot open ", path));
  }
  StacksFile file(fd, 0, 0);
  struct stat file_stat = {};
  struct stat ring_stat = {};
  // Somebody else's file must not be cut back by an agent of root's.
  const bool sound = fstat(fd, &file_stat) == 0 && lstat(ring.c_str(), &ring_stat) == 0 &&
                     S_ISREG(file_stat.st_mode) && file_stat.st_nlink == 1 &&
                     file_stat.st_uid == ring_stat.st_uid;
  char line[kMaxFirstLine] = {};
  const ssize_t got = sound ? pread(fd, line, sizeof(line), 0) : -1;
  absl::string_view text(line, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const size_t end = text.find('\n');
  text = text.substr(0, end);
  if (end == absl::string_view::npos || !absl::ConsumePrefix(&text, kMagic) ||
      !absl::SimpleAtoi(text, &file.signal_)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a file that tacho.init(stacks=True) made: remove it"));
  }
  file.begin_ = end + 1;
  if (file.Size() > kMaxStacksFile) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has grown above ", kMaxStacksFile,
                     " bytes: let the agent run as root or as the trainer's user"));
  }
  return file;
}

StacksFile::StacksFile(StacksFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      signal_(other.signal_),
      begin_(other.begin_),
      asked_(other.asked_) {}

StacksFile::~StacksFile() {
  if (fd_ >= 0) close(fd_);
}

uint64_t StacksFile::Size() const {
  struct stat now = {};
  return fstat(fd_, &now) == 0 ? static_cast<uint64_t>(now.st_size) : 0;
}

absl::Status StacksFile::Request(const TrainerProcess& process, uint32_t pid) {
  const auto status = ReadProcFile(absl::StrCat("/proc/", pid, "/status"));
  if (!status.ok() || !CatchesSignal(*status, signal_)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the trainer no longer has a handler for signal ", signal_));
  }
  asked_ = Size();
  return process.Signal(signal_);
}

absl::StatusOr<std::string> StacksFile::Take(absl::Time until) {
  uint64_t size = asked_;
  absl::Time quiet_since = MonotonicNow();
  for (absl::Time now = quiet_since; now < until; now = MonotonicNow()) {
    if (const uint64_t grown = Size(); grown != size) {
      size = grown;
      quiet_since = now;
    } else if (size > asked_ && now - quiet_since >= kQuiet) {
      break;
    }
    absl::SleepFor(kGlance);
  }
  if (size <= asked_) {
    return absl::DeadlineExceededError("no thread of the trainer has taken the signal");
  }
  std::string text(std::min(size - asked_, kMaxStacksDump), '\0');
  const ssize_t got = pread(fd_, text.data(), text.size(), static_cast<off_t>(asked_));
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  // Refused where the file is another user's; its limit holds then.
  if (ftruncate(fd_, static_cast<off_t>(begin_)) != 0) errno = 0;
  return text;
}

}  // namespace tacho::agent
