// Passes state of one stream to the next one to the same collector.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "agent/stream/acknowledged.h"
#include "agent/stream/lanes.h"
#include "agent/stream/pace.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Jobs that the collector does not let this agent write.
//
// Finding out costs two streams (Suspicion, below). Once the agent knows such a job, it gives the
// job's messages up without sending them, and the rows of all other jobs go on. Rights change, and
// the collector then ends the stream. So the agent tries every job again after a stream that was
// not refused, and now and then without that.
//
// One thread; outlives streams. Times are MonotonicNow()'s.
class DeniedJobs {
 public:
  // Jobs are tried again after a stream has ended, but no more often than this: a network that cuts
  // streams every second must not double what each cut costs.
  static constexpr absl::Duration kAfterStream = absl::Seconds(15);
  static constexpr absl::Duration kAnyway = absl::Minutes(10);
  // Trainers name jobs. Past this many the memory is cleared.
  static constexpr size_t kMaxJobs = 1024;

  // A message of `job`, alone on its way, was refused.
  void Deny(const std::string& job, std::string why, absl::Time now) {
    if (jobs_.size() >= kMaxJobs) jobs_.clear();
    if (jobs_.empty()) {
      known_since_ = now;
      may_have_changed_ = false;
    }
    jobs_[job] = std::move(why);
  }
  // A stream ended for another reason than a refused message.
  void StreamEnded() { may_have_changed_ = true; }

  // None is denied: then nothing need be looked up.
  bool empty() const { return jobs_.empty(); }
  // Why messages of `job` are to be given up; null if they are to be sent.
  const std::string* Find(const std::string& job, absl::Time now) {
    if (now >= known_since_ + (may_have_changed_ ? kAfterStream : kAnyway)) {
      jobs_.clear();
      may_have_changed_ = false;
    }
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, std::string> jobs_;  // With the reason.
  absl::Time known_since_ = absl::InfinitePast();
  bool may_have_changed_ = false;
};

// Counts what the collector refused or folded, added up between two lines of the log.
//
// One thread.
class RefusalReport {
 public:
  // Adds what an Ack reports, and calls `say` for each reason with something to say that was not
  // said within the last minute: with all that came since, the total, an example and what to do.
  // Call it for every Ack: what came within the minute is said then.
  void Add(const v1::Ack& ack, absl::Time now, const std::function<void(const std::string&)>& say);

 private:
  struct Sum {
    uint64_t samples = 0;
    uint64_t series = 0;
    uint64_t all_samples = 0;  // Since the start.
    v1::Reject last;
    absl::Time said = absl::InfinitePast();
  };
  void Add(const v1::Reject& reject, bool folded);
  static std::string LineOf(bool folded, const Sum& sum);

  std::map<std::pair<bool, int>, Sum> sums_;  // By whether they were folded, and reason.
};

// Finds the message that makes the collector end the stream.
//
// A refusal (INVALID_ARGUMENT, RESOURCE_EXHAUSTED) names no sequence, and several messages are on
// their way. So after the first one, messages are sent one at a time, each once the one before is
// durable, until all that were on their way have passed, in either lane. Whatever is alone when the
// stream is refused again is at fault.
//
// One thread; outlives streams.
class Suspicion {
 public:
  // After this many refused batches in a row the layout counts as refused: none of its batches is
  // sent.
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

struct StreamMemory {
  SendRate rate;     // The collector asked for it with Throttle.
  BacklogPace pace;  // The configuration allows it.
  Suspicion suspicion;
  DeniedJobs denied;
  RefusalReport refusals;
  Acknowledged acknowledged;
};

}  // namespace tacho::agent
