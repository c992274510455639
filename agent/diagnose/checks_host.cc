// Permissions, the spool's disk, huge pages, the clock: what this machine itself can say.
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/diagnose/context.h"
#include "agent/sources/host/host_text.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

std::string Why(int error) { return std::generic_category().message(error); }

std::vector<Finding> CheckVersions(const std::string& version) {
  utsname system = {};
  ::uname(&system);
  return {
      {.message =
           absl::StrCat("tacho-agent ", version, ", Linux ", system.release, " ", system.machine),
       .figures = {{"agent", version}, {"kernel", system.release}, {"machine", system.machine}}}};
}

// Whether this user may read what belongs to others.
std::vector<Finding> CheckPermissions(const std::string& proc, const std::string& rings) {
  std::vector<Finding> findings;
  const auto io = ReadProcFile(proc + "/1/io");
  if (io.ok()) {
    findings.push_back({.subject = "processes", .message = "the agent may look at all processes"});
  } else {
    findings.push_back(
        {.subject = "processes",
         .severity = Severity::kWarning,
         .message = absl::StrCat("open files and disk bytes of other users' trainers cannot be "
                                 "read (",
                                 proc, "/1/io: ", io.status().message(), ")"),
         .remedy = "run the agent as the trainers' user, as root, or with CAP_SYS_PTRACE"});
  }
  if (rings.empty()) return findings;
  Finding ring{.subject = rings};
  if (::access(rings.c_str(), R_OK | W_OK | X_OK) == 0) {
    ring.message = "the agent can read and remove rings";
  } else if (errno == ENOENT) {
    ring.severity = Severity::kInfo;
    ring.message = "the directory does not exist: no trainer has recorded here yet";
  } else {
    ring.severity = Severity::kFailed;
    ring.message = absl::StrCat("the agent cannot read or remove rings: ", Why(errno));
    ring.remedy =
        "make the agent's user the owner of the directory, or set another sources.rings.directory";
  }
  findings.push_back(std::move(ring));
  return findings;
}

// Writes and syncs a file, and says how long that took; negative: the errno.
double SyncSeconds(const std::string& directory) {
  std::string path = directory + "/.tacho-diagnose-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return -errno;
  ::unlink(path.c_str());
  const std::string page(4096, 'x');
  const absl::Time began = MonotonicNow();
  const bool written = ::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size()) &&
                       ::fdatasync(fd) == 0;
  const int error = errno;
  ::close(fd);
  return written ? absl::ToDoubleSeconds(MonotonicNow() - began) : -error;
}

std::vector<Finding> CheckSpool(const config::v1::Agent::Spool& config) {
  constexpr double kSlowSync = 0.5;
  constexpr double kGiB = 1 << 30;
  std::error_code error;
  fs::path directory = fs::absolute(config.path(), error);
  while (!fs::is_directory(directory, error) && directory.has_relative_path()) {
    directory = directory.parent_path();
  }
  Finding finding{.subject = config.path()};
  const double seconds = SyncSeconds(directory.string());
  struct statvfs about = {};
  if (seconds < 0 || ::statvfs(directory.c_str(), &about) != 0) {
    finding.severity = Severity::kFailed;
    finding.message = absl::StrCat("cannot write to ", directory.string(), ": ",
                                   Why(seconds < 0 ? static_cast<int>(-seconds) : errno));
    finding.remedy = "set spool.path to a directory that the agent's user may write to";
    return {finding};
  }
  const double room = static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize);
  finding.message = absl::StrFormat("%.1f GiB free on %s, a sync takes %.1f ms", room / kGiB,
                                    directory.string(), seconds * 1e3);
  finding.figures = {{"available_bytes", absl::StrFormat("%.0f", room)},
                     {"sync_seconds", absl::StrFormat("%.6f", seconds)}};
  if (room < static_cast<double>(config.max_bytes())) {
    finding.severity = Severity::kWarning;
    absl::StrAppendFormat(&finding.message, "; spool.max_bytes is %.1f GiB",
                          static_cast<double>(config.max_bytes()) / kGiB);
    finding.remedy =
        "free some room, or lower spool.max_bytes: an outage of the collector fills the disk";
  } else if (seconds > kSlowSync) {
    finding.severity = Severity::kWarning;
    finding.remedy = "put the spool on a local disk: the agent sends rows only after a sync";
  }
  return {finding};
}

std::vector<Finding> CheckHugePages(const std::string& sys) {
  const auto text = ReadProcFile(sys + "/kernel/mm/transparent_hugepage/enabled");
  if (!text.ok()) {
    return {{.severity = Severity::kInfo, .message = "the kernel has no transparent huge pages"}};
  }
  const std::string setting(absl::StripAsciiWhitespace(*text));
  Finding finding{.message = absl::StrCat("transparent huge pages: ", setting),
                  .figures = {{"setting", setting}}};
  if (!absl::StrContains(setting, "[always]")) {
    finding.severity = Severity::kInfo;
    absl::StrAppend(&finding.message,
                    "; TPU hosts start and transfer faster with 'always' (echo always > ", sys,
                    "/kernel/mm/transparent_hugepage/enabled)");
  }
  return {finding};
}

std::vector<Finding> CheckClock() {
  timex clock = {};
  const int result = ::adjtimex(&clock);
  if (result < 0) {
    return {{.severity = Severity::kInfo,
             .message =
                 absl::StrCat("the kernel does not report the state of its clock: ", Why(errno))}};
  }
  const double max_error = static_cast<double>(clock.maxerror) / 1e6;
  const bool kept = result != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
  Finding finding{.message = absl::StrFormat(
                      "a time service keeps the clock; it is wrong by at most %.3f s", max_error),
                  .figures = {{"synchronized", kept ? "1" : "0"},
                              {"max_error_seconds", absl::StrFormat("%.6f", max_error)}}};
  if (!kept) {
    finding.severity = Severity::kWarning;
    finding.message = "no time service keeps the clock, as far as the kernel knows";
    finding.remedy =
        "run chrony or systemd-timesyncd (in a container: on its host); rows of hosts "
        "line up only as well as their clocks";
  }
  return {finding};
}

}  // namespace

std::vector<Check> HostChecks(const DiagnoseContext& context) {
  const config::v1::Agent& config = context.config;
  const std::string hangs = "the file system hangs: look at the kernel log and at the mounts";
  return {
      {.name = "versions",
       .deadline = context.timeout,
       .run = [version = context.version] { return CheckVersions(version); }},
      {.name = "permissions",
       .deadline = context.timeout,
       .run = [proc = config.sources().host().proc(),
               rings =
                   config.sources().rings().directory()] { return CheckPermissions(proc, rings); },
       .remedy = hangs},
      {.name = "spool",
       .deadline = context.timeout,
       .run = [spool = config.spool()] { return CheckSpool(spool); },
       .remedy = hangs},
      {.name = "huge pages",
       .deadline = context.timeout,
       .run = [sys = config.sources().host().sys()] { return CheckHugePages(sys); },
       .remedy = hangs},
      {.name = "clock", .deadline = context.timeout, .run = CheckClock},
  };
}

std::vector<Check> AllChecks(const DiagnoseContext& context) {
  std::vector<Check> all;
  for (const auto& checks :
       {IdentityChecks, HostChecks, ChipChecks, SourceChecks, CollectorChecks, ComputeChecks}) {
    for (Check& check : checks(context)) all.push_back(std::move(check));
  }
  return all;
}

}  // namespace tacho::agent
