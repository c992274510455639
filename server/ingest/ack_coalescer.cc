#include "server/ingest/ack_coalescer.h"

#include <algorithm>
#include <utility>

namespace tacho::server::ingest {

void AckCoalescer::SetAgent(std::string agent_id, uint64_t generation) {
  absl::MutexLock lock(&mutex_);
  agent_id_ = std::move(agent_id);
  generation_ = generation;
}

void AckCoalescer::Accepted(uint64_t sequence, uint64_t bytes) {
  options_.total_pending->Add(bytes);
  absl::MutexLock lock(&mutex_);
  accepted_sequence_ = std::max(accepted_sequence_, sequence);
  ++pending_messages_;
  pending_bytes_ += bytes;
}

void AckCoalescer::Settled(const absl::Status& status, uint64_t bytes) {
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    --pending_messages_;
    pending_bytes_ -= bytes;
    if (status.ok()) ack_due_ = true;
    if (!status.ok() && failure_.ok()) failure_ = status;
    wake = !std::exchange(woken_, true);
  }
  options_.total_pending->Remove(bytes);
  if (wake) options_.wake();
}

void AckCoalescer::Rejected(const Refused& refused, absl::FunctionRef<void(v1::Reject*)> describe) {
  absl::MutexLock lock(&mutex_);
  const auto [found, fresh] = rejects_.try_emplace({refused.folded, refused.reason});
  v1::Reject& reject = found->second;
  if (fresh) describe(&reject);
  reject.set_reason(refused.reason);
  reject.set_samples(reject.samples() + refused.samples);
  reject.set_series(reject.series() + refused.series);
}

AckCoalescer::State AckCoalescer::Look() {
  absl::MutexLock lock(&mutex_);
  woken_ = false;
  return {ack_due_, pending_messages_, pending_bytes_, failure_};
}

v1::Ack AckCoalescer::TakeAck() {
  v1::Ack ack;
  std::string agent_id;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    // Before the store is asked, so that what becomes durable meanwhile is due again.
    ack_due_ = false;
    ack.set_accepted_sequence(accepted_sequence_);
    for (auto& [kind, reject] : rejects_) {
      *(kind.first ? ack.add_folded() : ack.add_rejects()) = std::move(reject);
    }
    rejects_.clear();
    agent_id = agent_id_;
    generation = generation_;
  }
  SetDurable(options_.store->DurableSequences(agent_id, generation), &ack);
  ack.set_clock_unix_ns(absl::ToUnixNanos(options_.now()));
  return ack;
}

}  // namespace tacho::server::ingest
