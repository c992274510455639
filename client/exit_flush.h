// Writes what recorders still hold when the process exits. Internal to the recorder.
//
// A trainer that calls exit(), or keeps its recorder in a variable that outlives main(), runs no
// destructor in time. This is the one piece of state that the library shares between recorders; it
// has no lock, which a fork() could copy while it is held.
#pragma once

#include <cstddef>

namespace tacho::client {

class ExitFlush {
 public:
  class Target {
   public:
    virtual ~Target() = default;
    // On the thread that calls exit(), at most once.
    virtual void FlushAtExit() noexcept = 0;
  };

  // Recorders of one process. Those beyond are not flushed by exit(), only by their destructors.
  static constexpr size_t kMaxTargets = 64;

  static void Add(Target* target) noexcept;
  // False if the target is being flushed by another thread, or has been: it must not be deleted
  // then, as the process is about to end.
  static bool Remove(Target* target) noexcept;
};

}  // namespace tacho::client
