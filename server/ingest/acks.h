// Acknowledgements: counts what waits for the disk, and wakes a stream when there is something to
// say.
//
//   store's committer -> AckCoalescer::Settled() -> AckPacer -> Paced::OnTick() -> one Ack
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "storage/store.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

class Paced {
 public:
  virtual ~Paced() = default;
  // On the pacer's thread.
  virtual void OnTick() = 0;
};

// Wakes streams that have something to say, at most once a tick each. The committer's callbacks
// only leave a note here, so that acknowledging costs the disk's thread nothing, and what becomes
// durable within a tick goes into one Ack.
//
// Thread-safe. A tick begins with the first Schedule() after the end of the one before, so that a
// single message is acknowledged at once.
class AckPacer {
 public:
  explicit AckPacer(absl::Duration tick);
  ~AckPacer();  // Drops everything that is scheduled.

  void Schedule(std::shared_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Streams = std::vector<std::shared_ptr<Paced>>;

  void Run();
  // Waits until something is scheduled and takes it; empty when stopping.
  Streams Take() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration tick_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Streams scheduled_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the others.
};

// Wakes streams at a time: when a pause is over, when Hello is overdue.
//
// Thread-safe. Times are MonotonicNow()'s.
class WakeTimer {
 public:
  WakeTimer();
  ~WakeTimer();  // Streams that wait are forgotten.

  // Calls stream->OnTick() on the timer's thread, within 10 ms after `when`, unless it has gone.
  void At(absl::Time when, std::weak_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    absl::Time when;
    std::weak_ptr<Paced> stream;
    bool operator<(const Entry& other) const { return when > other.when; }  // The soonest on top.
  };

  void Run();
  // Waits for the next stream and returns those that are due; none when stopping.
  std::vector<std::weak_ptr<Paced>> TakeDue() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::priority_queue<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last: it uses the others.
};

// Bytes of all streams together that wait for an acknowledgement, and the streams that wait until
// they are fewer: if those were read further, their messages would find the store's queue full,
// which ends a stream.
//
// Thread-safe.
class PendingBytes {
 public:
  struct Options {
    // Whether so many bytes are too many.
    std::function<bool(uint64_t bytes)> is_full = [](uint64_t) { return false; };
    AckPacer* pacer = nullptr;  // Not owned. Wakes those that wait; nullptr if none ever does.
  };
  PendingBytes() = default;
  // Before anything is added.
  void Configure(Options options) {
    TACHO_CHECK(bytes() == 0);
    options_ = std::move(options);
  }

  void Add(uint64_t bytes) { bytes_.fetch_add(bytes); }
  void Remove(uint64_t bytes);
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool IsFull() const { return options_.is_full(bytes_.load()); }

  // Wakes the stream once when there is room, in the order of the calls. Only for a stream that has
  // nothing pending itself: the others are woken when their messages settle.
  void AwaitRoom(std::weak_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // How many are woken for each message that leaves: one takes its place, and some may have
  // nothing to read.
  static constexpr size_t kWokenAtOnce = 4;

  void Wake(size_t most) ABSL_LOCKS_EXCLUDED(mutex_);

  Options options_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<size_t> waiting_{0};
  absl::Mutex mutex_;
  std::deque<std::weak_ptr<Paced>> queue_ ABSL_GUARDED_BY(mutex_);
};

// The acknowledgements that one stream owes its agent: which of its messages wait for the disk,
// what was refused, and whether there is anything new to say. Many messages make one Ack; the
// newest says everything.
//
// Thread-safe. Outlives the stream while the store still has a message of it.
class AckCoalescer {
 public:
  struct Options {
    const storage::Store* store = nullptr;  // Not owned; must outlive the stream.
    PendingBytes* total_pending = nullptr;  // Not owned; must outlive this.
    std::function<absl::Time()> now = absl::Now;
    // Called with no lock held when there is something new, and again only after Look()
    // has seen it. On any thread, the store's committer among them: be quick.
    std::function<void()> wake;
  };
  explicit AckCoalescer(Options options) : options_(std::move(options)) {}

  // The agent whose durable sequences the Acks report. Once, before the first Accepted().
  void SetAgent(std::string agent_id, uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Empty before SetAgent().
  std::string agent_id() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return agent_id_;
  }

  // A message goes to the store now.
  void Accepted(uint64_t sequence, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The store is done with a message that was accepted.
  void Settled(const absl::Status& status, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Samples of messages, or series of layouts, that were refused, or folded. `describe` is called
  // for the first of a reason since the last Ack, to fill in example and detail.
  struct Refused {
    v1::Reject::Reason reason = v1::Reject::REASON_UNSPECIFIED;
    bool folded = false;
    uint64_t samples = 0;
    uint64_t series = 0;
  };
  void Rejected(const Refused& refused, absl::FunctionRef<void(v1::Reject*)> describe)
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct State {
    bool ack_due = false;
    uint64_t pending_messages = 0;
    uint64_t pending_bytes = 0;
    absl::Status failure;  // The first that Settled() saw; OK if none.
  };
  // Looks, and asks to be woken again for what is newer.
  State Look() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t pending_bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return pending_bytes_;
  }

  // Everything durable so far, and the rejects that no Ack has reported yet.
  v1::Ack TakeAck() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Options options_;
  mutable absl::Mutex mutex_;
  std::string agent_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ack_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // Nobody has looked since.
  uint64_t accepted_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pending_messages_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // By whether they were folded, and reason.
  std::map<std::pair<bool, v1::Reject::Reason>, v1::Reject> rejects_ ABSL_GUARDED_BY(mutex_);
};

// Copies a set of durable sequences into a Welcome or an Ack.
template <typename Message>
void SetDurable(const storage::SequenceSet& durable, Message* message) {
  message->set_durable_sequence(durable.watermark());
  for (const storage::SequenceRange& range : durable.ahead()) {
    auto* ahead = message->add_durable_ahead();
    ahead->set_first(range.first);
    ahead->set_last(range.last);
  }
}

}  // namespace tacho::server::ingest
