// The process that writes a ring, as the kernel shows it: whether it is gone, and how it ended.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace tacho::agent {

// Holds a pidfd, which never means a later process with the same number. Knows nothing where the
// ring's number is of another pid namespace, or where pidfds are not allowed; then every call says
// that. One thread.
class TrainerProcess {
 public:
  // As the ring's header has them. `start_ticks` is 0 if unknown.
  TrainerProcess(uint32_t pid, uint64_t start_ticks);
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;
  ~TrainerProcess();

  // Whether it is known, and runs.
  bool Lives() const;
  // Whether it was known, and is gone. A child that it forked may live on, with the ring's lock.
  bool Gone() const;

  // Sends it a signal, whose default is to end the process: see that it has a handler for it.
  //   NOT_FOUND          it is not known, or gone.
  //   PERMISSION_DENIED  this process may not send signals to it.
  absl::Status Signal(int signal) const;

  // How it ended, as wait(2) returns it; nullopt if that is not known. The kernel shows it only
  // until the parent has collected it, and only to readers that may trace the process; from Linux
  // 6.15 on, a pidfd has it afterwards too.
  std::optional<int> ExitStatus() const;

 private:
  std::optional<int> StatusOfZombie() const;
  std::optional<int> StatusOfPidfd() const;

  const uint32_t pid_;
  const uint64_t start_ticks_;
  int pidfd_ = -1;
};

}  // namespace tacho::agent
