#include "client/ctl/line/interrupts.h"

#include <ctime>
#include <initializer_list>

namespace tacho::ctl {

Interrupts::Interrupts() {
  sigemptyset(&held_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) sigaddset(&held_, signal);
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

Interrupts::~Interrupts() {
  const timespec at_once{};
  while (sigtimedwait(&held_, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::came() const {
  sigset_t pending{};
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGHUP) == 1;
}

}  // namespace tacho::ctl
