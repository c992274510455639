// Sends what the plan says to a store, as several agents would: in order, now and then ahead of a
// backlog, now and then again, and reports when each message is sent and how it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "storage/store.h"
#include "tests/crash/wire.h"

namespace tacho::crash {

class Sender {
 public:
  struct Options {
    uint64_t seed = 0;  // The plan's: the same as long as a store lives.
    uint64_t life = 0;  // Varies what is sent when.
    size_t window = 16;
    // Called for each message when it is sent and when that has ended; from two threads.
    std::function<void(Report::Kind, uint32_t agent, uint64_t sequence, bool altered)> tell;
    // A message was refused for another reason than a full queue or the disk.
    std::function<void(const absl::Status&)> fail;
  };
  // `store` is not owned; it must outlive what is in flight.
  Sender(storage::Store* store, Options options);

  // Sends one message, once fewer than `window` are in flight. Returns the highest sequence so far.
  uint64_t SendOne() ABSL_LOCKS_EXCLUDED(mutex_);
  // Afterwards nothing is in flight, so that the sender may go before the store.
  void AwaitAnswers() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<uint32_t, uint64_t>;

  uint64_t PickSequence(uint32_t agent, bool* altered) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send(uint32_t agent, uint64_t sequence, bool altered) ABSL_LOCKS_EXCLUDED(mutex_);

  storage::Store* const store_;
  const Options options_;
  std::mt19937_64 random_;
  uint64_t newest_[8] = {};  // By agent.
  absl::Mutex mutex_;
  std::set<Key> in_flight_ ABSL_GUARDED_BY(mutex_);  // Without what is altered.
  uint64_t unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // With it.
};

}  // namespace tacho::crash
