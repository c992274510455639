#include "tests/chaos/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "absl/time/clock.h"

namespace tacho::chaos {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Process::Process(std::vector<std::string> words, std::string log,
                 std::vector<std::string> environment)
    : words_(std::move(words)), log_(std::move(log)), environment_(std::move(environment)) {}

void Process::Start() {
  std::vector<char*> arguments;
  for (const std::string& word : words_) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> environment;  // Of two of a name the first counts.
  for (const std::string& one : environment_) environment.push_back(const_cast<char*>(one.c_str()));
  for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
  environment.push_back(nullptr);
  const int out = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  pid_ = fork();
  if (pid_ != 0) {
    close(out);
    return;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execve(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

void Process::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Process::Stop(absl::Duration patience) {
  if (pid_ <= 0) return kCrashed;
  kill(pid_, SIGTERM);
  int status = 0;
  for (const absl::Time end = absl::Now() + patience; absl::Now() < end;) {
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      return WTERMSIG(status) == SIGTERM ? kTerminated : kCrashed;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  Kill();
  return kCrashed;
}

bool Process::alive() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) != pid_) return true;
  pid_ = -1;
  return false;
}

int FreePort() {
  std::random_device random;
  for (;;) {
    // Below the ports that the kernel gives to connections: one of those could take the port of a
    // program that is down for a moment.
    const int port = 20'000 + static_cast<int>(random() % 12'000);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (bound) return port;
  }
}

bool IsListening(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool listens =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return listens;
}

}  // namespace tacho::chaos
