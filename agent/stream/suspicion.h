// Finds the message that makes the collector end the stream.
//
// A refusal (INVALID_ARGUMENT, RESOURCE_EXHAUSTED) names no sequence, and several messages are on
// their way. So after the first one, messages are sent one at a time, each once the one before is
// durable, until all that were on their way have passed, in either lane. Whatever is alone when the
// stream is refused again is at fault.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "agent/stream/lanes.h"

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
    Lane lane = Lane::kFresh;
  };
  // The newest sequence tried of each lane; 0 if none was.
  using Tried = std::array<uint64_t, 2>;

  bool OneAtATime() const { return until_ != Tried{}; }
  // Messages of the lane are still to be proven; busy fresh rows must not keep the backlog from it.
  bool Suspects(Lane lane) const { return until_[static_cast<size_t>(lane)] != 0; }

  // The stream was refused. `last` is the message tried last, `alone` that no other was on its way.
  // True if it is at fault: give it up.
  bool Refused(const Message& last, bool alone, const Tried& tried) {
    if (OneAtATime() && alone) {
      if (last.layout != 0) ++refusals_[last.layout];
      Done(last);
      return true;
    }
    for (size_t lane = 0; lane < until_.size(); ++lane) {
      until_[lane] = std::max(until_[lane], tried[lane]);
    }
    return false;
  }
  // The collector has taken the message.
  void Passed(const Message& message) {
    refusals_.erase(message.layout);
    Done(message);
  }
  // The backlog lane is through: what it had to prove has passed, was dropped or is fresh by now.
  void BacklogPassed() { until_[static_cast<size_t>(Lane::kBacklog)] = 0; }
  bool IsHopeless(uint32_t layout) const {
    const auto found = refusals_.find(layout);
    return found != refusals_.end() && found->second >= kHopelessRefusals;
  }

 private:
  void Done(const Message& message) {
    uint64_t& until = until_[static_cast<size_t>(message.lane)];
    if (message.sequence >= until) until = 0;
  }

  Tried until_{};  // Up to here one at a time, by lane; 0 is not at all.
  std::unordered_map<uint32_t, int> refusals_;
};

}  // namespace tacho::agent
