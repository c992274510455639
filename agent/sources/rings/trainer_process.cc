#include "agent/sources/rings/trainer_process.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/host/host_text.h"
#include "agent/sources/host/process_stat.h"

namespace tacho::agent {
namespace {

// struct pidfd_info of linux/pidfd.h, which Debian 12 does not have yet.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup;
  uint32_t numbers[11];  // pid, tgid, ppid, and eight of users and groups.
  int32_t exit_status;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetPidfdInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr uint64_t kPidfdInfoExit = 1 << 3;

std::optional<ProcessStat> StatOf(uint32_t pid) {
  const absl::StatusOr<std::string> text = ReadProcFile(absl::StrCat("/proc/", pid, "/stat"));
  return text.ok() ? ParseProcessStat(*text) : std::nullopt;
}

// The kernel shows 0 as the exit status of a process that we may not trace; this link then cannot
// be read either, and that with another error than the link of a zombie.
bool MayTrace(uint32_t pid) {
  char target[1];
  return readlink(absl::StrCat("/proc/", pid, "/cwd").c_str(), target, sizeof(target)) >= 0 ||
         (errno != EACCES && errno != EPERM);
}

}  // namespace

TrainerProcess::TrainerProcess(uint32_t pid, uint64_t start_ticks)
    : pid_(pid), start_ticks_(start_ticks) {
  if (pid == 0 || start_ticks == 0) return;
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
  if (fd < 0) return;
  // Looked at after the pidfd was made: a process that starts now has another time.
  const std::optional<ProcessStat> stat = StatOf(pid);
  if (stat.has_value() && stat->start_ticks == start_ticks) {
    pidfd_ = fd;
  } else {
    close(fd);
  }
}

TrainerProcess::~TrainerProcess() {
  if (pidfd_ >= 0) close(pidfd_);
}

bool TrainerProcess::Lives() const { return pidfd_ >= 0 && !Gone(); }

bool TrainerProcess::Gone() const {
  if (pidfd_ < 0) return false;
  pollfd ended = {.fd = pidfd_, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, /*timeout=*/0) > 0 && (ended.revents & POLLIN) != 0;
}

absl::Status TrainerProcess::Signal(int signal) const {
  if (!Lives()) return absl::NotFoundError("the process is gone");
  if (syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0) == 0) return absl::OkStatus();
  if (errno == ESRCH) return absl::NotFoundError("the process is gone");
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot send signal ", signal));
}

std::optional<int> TrainerProcess::ExitStatus() const {
  if (!Gone()) return std::nullopt;
  const std::optional<int> status = StatusOfZombie();
  return status.has_value() ? status : StatusOfPidfd();
}

std::optional<int> TrainerProcess::StatusOfZombie() const {
  if (!MayTrace(pid_)) return std::nullopt;
  const std::optional<ProcessStat> stat = StatOf(pid_);
  if (!stat.has_value() || stat->start_ticks != start_ticks_) return std::nullopt;
  return stat->exit_status;
}

std::optional<int> TrainerProcess::StatusOfPidfd() const {
  PidfdInfo info = {};
  info.mask = kPidfdInfoExit;
  if (ioctl(pidfd_, kGetPidfdInfo, &info) != 0 || (info.mask & kPidfdInfoExit) == 0) {
    return std::nullopt;
  }
  return info.exit_status;
}

}  // namespace tacho::agent
