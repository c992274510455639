// Finds the message that makes the collector end the stream.
//
// A refusal (INVALID_ARGUMENT, RESOURCE_EXHAUSTED) names no sequence, and several messages are on
// their way. So after the first one, messages are sent one at a time, each once the one before is
// durable, until all that were on their way have passed. Whatever is alone when the stream is
// refused again is at fault.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

namespace tacho::agent {

// One thread; outlives streams.
class Suspicion {
 public:
  // After so many batches in a row it is the layout that is refused, and no batch of it is sent.
  static constexpr int kHopelessRefusals = 3;

  struct Message {
    uint64_t sequence = 0;
    uint32_t layout = 0;  // 0 if it is no Batch.
    uint64_t rows = 0;
  };

  bool OneAtATime() const { return until_ != 0; }

  // The stream was refused. `newest` is the newest message tried, `alone` that no other was on its
  // way. True if it is at fault: give it up.
  bool Refused(const Message& newest, bool alone) {
    if (OneAtATime() && alone) {
      if (newest.layout != 0) ++refusals_[newest.layout];
      Done(newest.sequence);
      return true;
    }
    until_ = std::max(until_, newest.sequence);
    return false;
  }
  // The collector has taken the message.
  void Passed(const Message& message) {
    refusals_.erase(message.layout);
    Done(message.sequence);
  }
  bool IsHopeless(uint32_t layout) const {
    const auto found = refusals_.find(layout);
    return found != refusals_.end() && found->second >= kHopelessRefusals;
  }

 private:
  void Done(uint64_t sequence) {
    if (sequence >= until_) until_ = 0;
  }

  uint64_t until_ = 0;  // Up to here one at a time; 0 is not at all.
  std::unordered_map<uint32_t, int> refusals_;
};

}  // namespace tacho::agent
