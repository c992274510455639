// Counters of the ingest service; server/metrics/metric_table.h says what it means.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "proto/base/check.h"
#include "server/edge/quotas.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// The name that people read: "series_limit" for REASON_SERIES_LIMIT.
std::string RejectReasonName(v1::Reject::Reason reason);

// Why admission refused a whole message. The order is that of the checks.
enum class Refusal {
  kEncoding,  // The bytes are no ClientMessage.
  kDraining,  // The collector is shutting down.
  kNoHello,   // Something came before Hello.
  kRepeated,  // A second Hello.
  kUnknown,   // No message in it that this version knows.
  kTooLarge,  // More rows, layouts, series, labels or fields than allowed.
  kText,      // A name, label or text breaks its rules.
  kSequence,  // A sequence or range of them is impossible.
  kLayout,    // A batch names a layout that was not defined.
  kShape,     // Times, steps and values do not fit together.
  kTime,      // A time before 1970.
  kRights,    // A job or agent_id that the caller may not write.
  kShard,     // For another collector of the cluster.
  kCount_,
};

// Thread-safe. Refers to the registry that it was made with, which must outlive it.
class IngestMetrics {
 public:
  // The most that one report of an agent adds to a counter of lost or missing messages or rows:
  // more than an honest agent sends in a year. The numbers cannot be checked, and a foreign
  // Hello that adds 2^62 would hide every later increase.
  static constexpr uint64_t kMostReported = uint64_t{1} << 32;

  explicit IngestMetrics(prometheus::Registry* registry);

  void StreamStarted() { streams_.Increment(); }
  void StreamGone() { streams_.Decrement(); }
  void StreamEnded(absl::StatusCode code);
  void MessageRefused(Refusal reason) { refusals_[static_cast<int>(reason)]->Increment(); }
  // A stream is not read from because of a quota; kNone: until what it sent is durable.
  void StreamHeldBack(edge::Quotas::Limit why) { held_back_[Index(why)]->Increment(); }
  // A pause that StreamHeldBack() counted is over.
  void StreamWaited(edge::Quotas::Limit why, absl::Duration length) {
    waits_[Index(why)]->Increment(absl::ToDoubleSeconds(length));
  }
  // A stream was ended because the store's queue was full.
  void QueueWasFull() { queue_full_->Increment(); }
  void BatchAdmitted(uint64_t rows, uint64_t samples);
  void SamplesRejected(v1::Reject::Reason reason, uint64_t samples);
  // Of jobs that other collectors of the cluster keep: samples or events of other tools.
  void Misdirected(uint64_t samples) { misdirected_->Increment(static_cast<double>(samples)); }
  uint64_t samples_rejected() const;  // For whatever reason.
  void SamplesFolded(uint64_t samples) { folded_.Increment(static_cast<double>(samples)); }
  // An agent reported sequences that will never come, and the rows in them if it knew.
  void LossReported(uint64_t sequences, uint64_t rows);
  // So many messages that an agent knows to be acknowledged are not durable any more. Its spool no
  // longer has those that are `gone`; it sends the others `again`.
  void AcknowledgedMissing(uint64_t gone, uint64_t again);
  void AckSent() { acks_.Increment(); }
  // The agent's clock was measured, with this bound on the error.
  void ClockMeasured(absl::Duration uncertainty) {
    clock_uncertainty_.Observe(absl::ToDoubleSeconds(uncertainty));
  }
  // It was set.
  void ClockStepped(bool ahead) { (ahead ? clock_steps_ahead_ : clock_steps_back_).Increment(); }
  // How far the agent's clock is ahead of ours, on connecting and after it was set.
  void ClockOffsetSeen(absl::Duration offset) {
    clock_offset_.Observe(absl::ToDoubleSeconds(offset));
  }

 private:
  static constexpr size_t kLimits = static_cast<size_t>(edge::Quotas::Limit::kDefinitions) + 1;
  static size_t Index(edge::Quotas::Limit limit) {
    TACHO_CHECK(static_cast<size_t>(limit) < kLimits);
    return static_cast<size_t>(limit);
  }

  prometheus::Gauge& streams_;
  prometheus::Counter& batches_;
  prometheus::Counter& rows_;
  prometheus::Counter& samples_;
  prometheus::Counter& folded_;
  prometheus::Counter& acks_;
  prometheus::Counter& lost_messages_;
  prometheus::Counter& lost_rows_;
  prometheus::Counter* missing_gone_;
  prometheus::Counter* missing_again_;
  prometheus::Histogram& clock_offset_;
  prometheus::Histogram& clock_uncertainty_;
  prometheus::Counter& clock_steps_ahead_;
  prometheus::Counter& clock_steps_back_;
  prometheus::Family<prometheus::Counter>& stream_ends_;
  // Made ahead, so that counting takes no lock and a dashboard sees zeros.
  prometheus::Counter* refusals_[static_cast<int>(Refusal::kCount_)];
  prometheus::Counter* held_back_[kLimits];
  prometheus::Counter* waits_[kLimits];
  prometheus::Counter* queue_full_;
  std::map<v1::Reject::Reason, prometheus::Counter*> rejects_;
  prometheus::Counter* misdirected_;
};

}  // namespace tacho::server::ingest
