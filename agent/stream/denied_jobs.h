// Jobs that the collector does not let this agent write.
//
// To find out costs two streams (suspicion.h), so once it is known of a job, its messages are given
// up without being sent, and the rows of all other jobs go on. Rights change: the collector ends
// the streams of those whose rights do, so after a stream that was not refused every job is tried
// again, and now and then without that.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace tacho::agent {

// One thread; outlives streams. Times are MonotonicNow()'s.
class DeniedJobs {
 public:
  // Jobs are tried again after a stream has ended, at most so often: a network that cuts streams
  // every second must not double what each cut costs.
  static constexpr absl::Duration kAfterStream = absl::Seconds(15);
  static constexpr absl::Duration kAnyway = absl::Minutes(10);
  // Trainers name jobs. Past so many the oldest knowledge goes.
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

}  // namespace tacho::agent
