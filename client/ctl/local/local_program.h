// Programs of this project that tachoctl starts on this machine: finds them, starts and stops them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::ctl {

// The path of the program `name`: beside this one, else where a build of this project has it, else
// on `path` (as $PATH).
//   NOT_FOUND  it is nowhere there; the text says what to do.
absl::StatusOr<std::string> FindProgram(absl::string_view name, absl::string_view path);

// One process, in a process group of its own, so that Ctrl-C reaches only tachoctl, which then
// stops its programs in order. It ends with tachoctl, however that ends. For the main thread.
class LocalProgram {
 public:
  // `name` is for messages. The program's output is appended to the file `log`.
  LocalProgram(std::string name, std::string log) : name_(std::move(name)), log_(std::move(log)) {}
  ~LocalProgram();  // Kills it.
  LocalProgram(const LocalProgram&) = delete;
  LocalProgram& operator=(const LocalProgram&) = delete;

  // Once.
  //   UNAVAILABLE  the log cannot be written, or the program cannot be started.
  absl::Status Start(const std::vector<std::string>& words);
  // SIGTERM, and SIGKILL after `patience`. OK if it was never started.
  //   UNAVAILABLE  it did not end with status 0, or not in time; the text names its log.
  absl::Status Stop(absl::Duration patience);
  // Whether it has ended, by itself or by Stop().
  bool HasEnded();
  // The last lines of what it printed since Start(), which mostly say why it ended.
  std::string LastLines() const;
  const std::string& name() const { return name_; }
  const std::string& log() const { return log_; }
  pid_t pid() const { return pid_; }  // -1: not started.

 private:
  const std::string name_;
  const std::string log_;
  pid_t pid_ = -1;
  off_t log_begin_ = 0;
  std::optional<int> ended_;  // As waitpid() says it.
};

}  // namespace tacho::ctl
