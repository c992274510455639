// What one stream owes its agent: which of its messages wait for the disk, what was refused, and
// whether there is anything new to say. Many messages make one Ack; the newest says everything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/ingest/pending_bytes.h"
#include "storage/store.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

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

  // Whose durable sequences acknowledgements tell. Once, before the first Accepted().
  void SetAgent(std::string agent_id, uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Empty before SetAgent().
  std::string agent_id() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return agent_id_;
  }

  // A message goes to the store now...
  void Accepted(uint64_t sequence, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // ... and this became of it.
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

  // Everything durable so far, and the rejects not told yet.
  v1::Ack TakeAck() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Options options_;
  mutable absl::Mutex mutex_;
  std::string agent_id_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ack_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // And nobody has looked since.
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
