#include "agent/diagnose/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"

extern char** environ;

namespace tacho::agent {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// A file in memory with the text, at its beginning.
int InputFile(const std::string& text) {
  const int fd = ::memfd_create("input", MFD_CLOEXEC);
  if (fd < 0) return fd;
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t got = ::write(fd, text.data() + written, text.size() - written);
    if (got <= 0) break;
    written += static_cast<size_t>(got);
  }
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

int Spawn(const std::vector<std::string>& arguments, int input, int output, pid_t* pid) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  const int error = ::posix_spawnp(pid, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads until all writers have gone, or the deadline.
bool ReadUntil(int fd, absl::Time deadline, std::string* text) {
  char buffer[4096];
  for (;;) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) return false;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
    if (got < 0) continue;
    const size_t room = kMaxChildOutput - std::min(kMaxChildOutput, text->size());
    text->append(buffer, std::min(room, static_cast<size_t>(got)));
  }
}

}  // namespace

absl::StatusOr<ChildOutput> RunChild(const std::vector<std::string>& arguments,
                                     const std::string& input, absl::Duration timeout) {
  const absl::Time deadline = MonotonicNow() + timeout;
  const FileDescriptor in(InputFile(input));
  int ends[2] = {-1, -1};
  if (in.get() < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const FileDescriptor out(ends[0]);
  FileDescriptor write_end(ends[1]);
  pid_t pid = 0;
  const int error = Spawn(arguments, in.get(), write_end.get(), &pid);
  write_end.Close();
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", arguments[0]));
  if (error != 0) return absl::UnavailableError(absl::ErrnoToStatus(error, arguments[0]).message());
  ChildOutput output;
  const bool ended = ReadUntil(out.get(), deadline, &output.text);
  // Whatever it has started goes with it; without this a grandchild would hold chips.
  ::kill(-pid, SIGKILL);
  int status = 0;
  // A process in state D does not end by being killed: it is left to the system.
  const absl::Time reap = MonotonicNow() + absl::Seconds(1);
  pid_t reaped = 0;
  while ((reaped = ::waitpid(pid, &status, WNOHANG)) == 0 && MonotonicNow() < reap) {
    ::usleep(5000);
  }
  if (!ended) {
    constexpr size_t kTail = 300;
    const size_t from = output.text.size() - std::min(kTail, output.text.size());
    return absl::DeadlineExceededError(absl::StrCat(arguments[0], " did not end within ",
                                                    absl::FormatDuration(timeout), ": ",
                                                    output.text.substr(from)));
  }
  constexpr int kSignalled = 128;
  output.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
  return output;
}

}  // namespace tacho::agent
