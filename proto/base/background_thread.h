// Threads whose work can wait while others have something to do, or that work in rounds.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho {

// Gives the calling thread a name, of at most 15 bytes, and a nice value of kBackgroundNice: where
// all processors are busy it gets about a tenth of what a usual thread does. Such a thread must
// hold no lock for long that a usual one waits for. Where the priority cannot be changed it stays.
inline constexpr int kBackgroundNice = 10;
void BecomeBackgroundThread(const char* name);

// Calls a function again and again, on a thread of its own. Start(), Stop() and destruction are for
// one thread.
class RepeatingThread {
 public:
  enum class Priority { kUsual, kBackground };

  ~RepeatingThread() { Stop(); }
  // From now on calls `work`, with `pause` before each call. Once. `name` as above.
  void Start(const char* name, Priority priority, absl::Duration pause, std::function<void()> work);
  // Waits for a call in progress; none begins after this. May be called again.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsStoppedWithin(absl::Duration pause) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tacho
