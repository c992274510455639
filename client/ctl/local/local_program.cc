// A program is started with fork() and exec(): posix_spawn() cannot ask the kernel to end the child
// with its parent. Between the two only async-signal-safe calls are made.
#include "client/ctl/local/local_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"

namespace tacho::ctl {
namespace {

constexpr size_t kLinesShown = 5;
constexpr off_t kBytesLookedAt = 64 << 10;
constexpr absl::Duration kPause = absl::Milliseconds(20);
// Where the folder of tachoctl in a build leads to the other programs.
constexpr const char* kBuildFolders[] = {"../../server/", "../../agent/"};

std::string ErrorText() { return std::generic_category().message(errno); }

// Only async-signal-safe calls: other threads may hold any lock.
[[noreturn]] void BecomeProgram(char* const* words, int log, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // It died before the line above.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);  // NOLINT(bugprone-signal-handler)
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(words[0], words);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view path) {
  std::vector<std::string> places;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::filesystem::path here = self.parent_path();
    places.push_back(here / std::string(name));
    // Elsewhere these folders may be anybody's.
    if (std::filesystem::exists(here / "../../CMakeCache.txt", error)) {
      for (const char* folder : kBuildFolders) {
        places.push_back((here / absl::StrCat(folder, name)).lexically_normal());
      }
    }
  }
  for (const auto folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    places.push_back(absl::StrCat(folder, "/", name));
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0 && !std::filesystem::is_directory(place, error)) {
      return place;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ", name,
                   " beside tachoctl or on PATH: install it, or build it with cmake --build "
                   "build/release --target ",
                   name));
}

LocalProgram::~LocalProgram() {
  if (pid_ < 0 || HasEnded()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::Status LocalProgram::Start(const std::vector<std::string>& words) {
  const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", log_, ": ", ErrorText()));
  }
  log_begin_ = lseek(log, 0, SEEK_END);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) BecomeProgram(arguments.data(), log, parent);
  const std::string reason = ErrorText();
  close(log);
  if (pid_ > 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot start ", name_, ": ", reason));
}

bool LocalProgram::HasEnded() {
  if (pid_ < 0) return false;
  int status = 0;
  if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) ended_ = status;
  return ended_.has_value();
}

absl::Status LocalProgram::Stop(absl::Duration patience) {
  if (pid_ < 0) return absl::OkStatus();
  if (!HasEnded()) kill(pid_, SIGTERM);
  const absl::Time deadline = MonotonicNow() + patience;
  while (!HasEnded() && MonotonicNow() < deadline) absl::SleepFor(kPause);
  if (!HasEnded()) {
    kill(pid_, SIGKILL);
    return absl::UnavailableError(absl::StrCat(
        name_, " did not stop in ", absl::FormatDuration(patience), " and was killed; see ", log_));
  }
  if (WIFEXITED(*ended_) && WEXITSTATUS(*ended_) == 0) return absl::OkStatus();
  // A signal that came before the program could take it: it had nothing to put in order yet.
  if (WIFSIGNALED(*ended_) && WTERMSIG(*ended_) == SIGTERM) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(name_, " did not end well; see ", log_));
}

std::string LocalProgram::LastLines() const {
  std::ifstream file(log_);
  file.seekg(0, std::ios::end);
  const off_t end = file.tellg();
  file.seekg(std::max(log_begin_, end - kBytesLookedAt));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (lines.size() > kLinesShown) lines.erase(lines.begin(), lines.end() - kLinesShown);
  return absl::StrJoin(lines, "\n");
}

}  // namespace tacho::ctl
