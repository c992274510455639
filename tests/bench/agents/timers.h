// A queue of things to do later, in order of time.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace tacho::bench {

enum class TimerKind : uint8_t { kConnect, kWelcomeTimeout, kSend, kTrickle, kCalmAgain };

// Seconds of MonotonicSeconds().
struct Timer {
  double at = 0;
  uint32_t agent = 0;
  uint32_t connection = 0;  // The agent's when it was set; a timer of an older one means nothing.
  TimerKind kind = TimerKind::kConnect;
};

// One thread.
class Timers {
 public:
  void Add(const Timer& timer) { queue_.push(timer); }
  double next() const {
    return queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.top().at;
  }
  Timer Take() {
    const Timer timer = queue_.top();
    queue_.pop();
    return timer;
  }

 private:
  struct Later {
    bool operator()(const Timer& a, const Timer& b) const { return a.at > b.at; }
  };
  std::priority_queue<Timer, std::vector<Timer>, Later> queue_;
};

}  // namespace tacho::bench
