// A thread for calls into a driver, which may never return.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/time/time.h"

namespace tacho::agent {

// One call at a time. Its owner's thread asks; nothing of the owner's may be captured but what the
// call shares in owning, since a call that does not return outlives the worker.
class CallWorker {
 public:
  CallWorker();
  CallWorker(const CallWorker&) = delete;
  CallWorker& operator=(const CallWorker&) = delete;
  // Joins the thread if it is idle; else leaves it behind, to end when its call returns.
  ~CallWorker();

  // False, and nothing begins, while the last call has not returned.
  bool Start(std::function<void()> call);
  bool idle() const;
  // Waits for the call to return, at most `most` of real time. Returns whether it has.
  bool WaitIdle(absl::Duration most) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tacho::agent
