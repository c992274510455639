#include "tests/crash/victim_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/time/clock.h"

namespace tacho::crash {
namespace {

// Takes the reports that are whole, and leaves the rest.
template <typename Take>
void TakeReports(std::string* in, const Take& take) {
  size_t at = 0;
  while (in->size() - at >= sizeof(Report)) {
    Report report;
    std::memcpy(&report, in->data() + at, sizeof(report));
    const bool has_text = report.kind == Report::kContents || report.kind == Report::kFailed;
    if (has_text && in->size() - at < sizeof(report) + report.number) break;
    at += sizeof(report);
    absl::string_view text;
    if (has_text) {
      text = absl::string_view(*in).substr(at, report.number);
      at += report.number;
    }
    take(report, text);
  }
  in->erase(0, at);
}

pid_t Start(const std::function<int(int fd)>& body, int* from) {
  int ends[2];
  if (::pipe(ends) != 0) ::abort();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    ::_exit(body(ends[1]));
  }
  ::close(ends[1]);
  *from = ends[0];
  return pid;
}

}  // namespace

VictimLife LiveAndBeKilled(const std::function<int(int fd)>& body, absl::Duration kill_after,
                           bool from_ready,
                           const std::function<void(const Report&, absl::string_view)>& take) {
  VictimLife life;
  int fd = -1;
  const pid_t pid = Start(body, &fd);
  std::string in;
  absl::Time deadline = absl::Now() + (from_ready ? absl::Minutes(1) : kill_after);
  for (;;) {
    pollfd poll{fd, POLLIN, 0};
    const absl::Duration left = deadline - absl::Now();
    const timespec timeout = absl::ToTimespec(std::max(left, absl::ZeroDuration()));
    const int events = life.killed ? 1 : ::ppoll(&poll, 1, &timeout, nullptr);
    if (events < 0 && errno == EINTR) continue;
    if (events == 0) {
      life.overdue = from_ready && !life.opened;
      ::kill(pid, SIGKILL);
      life.killed = true;
      continue;
    }
    char bytes[65536];
    const ssize_t size = ::read(fd, bytes, sizeof(bytes));
    if (size <= 0) break;
    in.append(bytes, static_cast<size_t>(size));
    TakeReports(&in, [&](const Report& report, absl::string_view text) {
      take(report, text);
      if (report.kind != Report::kContents || life.opened) return;
      life.opened = true;
      if (from_ready) deadline = absl::Now() + kill_after;
    });
  }
  ::close(fd);
  ::waitpid(pid, &life.status, 0);
  return life;
}

}  // namespace tacho::crash
