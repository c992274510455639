// Ctrl-C and its kin as something to ask for, so that a command can end in order.
#pragma once

#include <csignal>

namespace tacho::ctl {

// While it exists, SIGINT, SIGTERM and SIGHUP wait in this thread and in those that it starts, and
// Ctrl-Z does nothing. To be made before any other thread is.
class Interrupts {
 public:
  Interrupts();
  // Forgets what came.
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Whether one of the three came.
  bool came() const;

 private:
  sigset_t held_{};
  sigset_t before_{};
};

}  // namespace tacho::ctl
