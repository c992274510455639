#include "server/ingest/ingest_metrics.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::ingest {
namespace {

using metrics::CounterFamily;
using metrics::NewCounter;

constexpr const char* kRefusalNames[] = {"encoding",  "draining", "no_hello", "repeated", "unknown",
                                         "too_large", "text",     "sequence", "layout",   "shape",
                                         "time",      "rights",   "shard"};
static_assert(std::size(kRefusalNames) == static_cast<size_t>(Refusal::kCount_));

// In the order of edge::Quotas::Limit.
constexpr const char* kLimitNames[] = {"flow_control", "agent_rate", "job_rate", "memory",
                                       "definitions"};
constexpr const char kQueueFull[] = "queue_full";

double AsReported(uint64_t number) {
  return static_cast<double>(std::min(number, IngestMetrics::kMostReported));
}

}  // namespace

std::string RejectReasonName(v1::Reject::Reason reason) {
  constexpr size_t kPrefixLength = sizeof("REASON_") - 1;
  return absl::AsciiStrToLower(v1::Reject::Reason_Name(reason).substr(kPrefixLength));
}

IngestMetrics::IngestMetrics(prometheus::Registry* registry)
    : streams_(metrics::NewGauge(registry, "tacho_ingest_streams")),
      batches_(NewCounter(registry, "tacho_ingest_batches_total")),
      rows_(NewCounter(registry, "tacho_ingest_rows_total")),
      samples_(NewCounter(registry, "tacho_ingest_samples_accepted_total")),
      folded_(NewCounter(registry, "tacho_ingest_samples_folded_total")),
      acks_(NewCounter(registry, "tacho_ingest_acks_total")),
      lost_messages_(NewCounter(registry, "tacho_ingest_lost_messages_total")),
      lost_rows_(NewCounter(registry, "tacho_ingest_lost_rows_total")),
      clock_offset_(metrics::NewHistogram(registry, "tacho_ingest_clock_offset_seconds",
                                          {-60, -10, -1, -0.1, -0.01, 0, 0.01, 0.1, 1, 10, 60})),
      clock_uncertainty_(metrics::NewHistogram(registry, "tacho_ingest_clock_uncertainty_seconds",
                                               {0.0001, 0.001, 0.01, 0.1, 1, 10})),
      clock_steps_ahead_(metrics::NewCounter(registry, "tacho_ingest_clock_steps_total",
                                             {{"direction", "ahead"}})),
      clock_steps_back_(
          metrics::NewCounter(registry, "tacho_ingest_clock_steps_total", {{"direction", "back"}})),
      stream_ends_(CounterFamily(registry, "tacho_ingest_stream_ends_total")) {
  auto& refusals = CounterFamily(registry, "tacho_ingest_messages_refused_total");
  for (size_t i = 0; i < std::size(kRefusalNames); ++i) {
    refusals_[i] = &refusals.Add({{"reason", kRefusalNames[i]}});
  }
  auto& missing = CounterFamily(registry, "tacho_ingest_acknowledged_missing_messages_total");
  missing_gone_ = &missing.Add({{"fate", "gone"}});
  missing_again_ = &missing.Add({{"fate", "again"}});
  auto& throttlings = CounterFamily(registry, "tacho_ingest_throttled_total");
  auto& waits = CounterFamily(registry, "tacho_ingest_throttled_seconds_total");
  static_assert(std::size(kLimitNames) == kLimits);
  for (size_t i = 0; i < kLimits; ++i) {
    held_back_[i] = &throttlings.Add({{"how", kLimitNames[i]}});
    waits_[i] = &waits.Add({{"how", kLimitNames[i]}});
  }
  queue_full_ = &throttlings.Add({{"how", kQueueFull}});
  waits.Add({{"how", kQueueFull}});  // Always 0: such a stream is ended.
  auto& rejects = CounterFamily(registry, "tacho_ingest_samples_rejected_total");
  for (int reason = 1; reason <= v1::Reject::Reason_MAX; ++reason) {
    const auto value = static_cast<v1::Reject::Reason>(reason);
    rejects_[value] = &rejects.Add({{"reason", RejectReasonName(value)}});
  }
  misdirected_ = &rejects.Add({{"reason", "shard"}});
}

uint64_t IngestMetrics::samples_rejected() const {
  double samples = misdirected_->Value();
  for (const auto& [reason, counter] : rejects_) samples += counter->Value();
  return static_cast<uint64_t>(samples);
}

void IngestMetrics::LossReported(uint64_t sequences, uint64_t rows) {
  lost_messages_.Increment(AsReported(sequences));
  lost_rows_.Increment(AsReported(rows));
}

void IngestMetrics::AcknowledgedMissing(uint64_t gone, uint64_t again) {
  missing_gone_->Increment(AsReported(gone));
  missing_again_->Increment(AsReported(again));
}

void IngestMetrics::StreamEnded(absl::StatusCode code) {
  stream_ends_.Add({{"code", absl::StatusCodeToString(code)}}).Increment();
}

void IngestMetrics::BatchAdmitted(uint64_t rows, uint64_t samples) {
  batches_.Increment();
  rows_.Increment(static_cast<double>(rows));
  samples_.Increment(static_cast<double>(samples));
}

void IngestMetrics::SamplesRejected(v1::Reject::Reason reason, uint64_t samples) {
  const auto counter = rejects_.find(reason);
  if (counter != rejects_.end()) counter->second->Increment(static_cast<double>(samples));
}

}  // namespace tacho::server::ingest
