#include "server/ingest/ingest_metrics.h"

#include <string>

#include "absl/strings/ascii.h"

namespace tacho::server::ingest {
namespace {

constexpr const char* kRefusalNames[] = {"encoding", "draining",  "no_hello", "repeated",
                                         "unknown",  "too_large", "text",     "sequence",
                                         "layout",   "shape",     "time",     "rights"};
static_assert(std::size(kRefusalNames) == static_cast<size_t>(Refusal::kCount_));

constexpr const char* kThrottlingNames[] = {"flow_control", "queue_full", "agent_rate",
                                            "job_rate",     "memory",     "definitions"};
static_assert(std::size(kThrottlingNames) == static_cast<size_t>(Throttling::kCount_));

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry* registry,
                                                       const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}

prometheus::Counter& PlainCounter(prometheus::Registry* registry, const char* name,
                                  const char* help) {
  return CounterFamily(registry, name, help).Add({});
}

// REASON_SERIES_LIMIT -> "series_limit".
std::string ReasonName(v1::Reject::Reason reason) {
  constexpr size_t kPrefixLength = sizeof("REASON_") - 1;
  return absl::AsciiStrToLower(v1::Reject::Reason_Name(reason).substr(kPrefixLength));
}

}  // namespace

IngestMetrics::IngestMetrics(prometheus::Registry* registry)
    : streams_(prometheus::BuildGauge()
                   .Name("tacho_ingest_streams")
                   .Help("Streams of agents that are open.")
                   .Register(*registry)
                   .Add({})),
      batches_(PlainCounter(registry, "tacho_ingest_batches_total",
                            "Batches that passed admission, repeats included.")),
      rows_(PlainCounter(registry, "tacho_ingest_rows_total",
                         "Rows that passed admission, repeats included.")),
      samples_(PlainCounter(registry, "tacho_ingest_samples_accepted_total",
                            "Values that passed admission, repeats and stale markers included.")),
      folded_(
          PlainCounter(registry, "tacho_ingest_samples_folded_total",
                       "Values that were added up in overflow series, stale markers included.")),
      acks_(PlainCounter(registry, "tacho_ingest_acks_total", "Acknowledgements sent.")),
      lost_messages_(PlainCounter(registry, "tacho_ingest_lost_messages_total",
                                  "Messages that agents reported as lost in their spools.")),
      lost_rows_(PlainCounter(registry, "tacho_ingest_lost_rows_total",
                              "Rows that agents reported as lost in their spools.")),
      clock_offset_(prometheus::BuildHistogram()
                        .Name("tacho_ingest_clock_offset_seconds")
                        .Help("How far agents' clocks are ahead of the collector's when they "
                              "connect, less the time their first message took.")
                        .Register(*registry)
                        .Add({}, prometheus::Histogram::BucketBoundaries{-60, -10, -1, -0.1, -0.01,
                                                                         0, 0.01, 0.1, 1, 10, 60})),
      stream_ends_(CounterFamily(registry, "tacho_ingest_stream_ends_total",
                                 "Streams that ended, by gRPC status code.")) {
  auto& refusals = CounterFamily(registry, "tacho_ingest_messages_refused_total",
                                 "Messages that admission refused, by reason.");
  for (size_t i = 0; i < std::size(kRefusalNames); ++i) {
    refusals_[i] = &refusals.Add({{"reason", kRefusalNames[i]}});
  }
  auto& throttlings = CounterFamily(registry, "tacho_ingest_throttled_total",
                                    "Times that a stream was slowed down, by means.");
  auto& waits = CounterFamily(registry, "tacho_ingest_throttled_seconds_total",
                              "Time in which streams were not read from, by means.");
  for (size_t i = 0; i < std::size(kThrottlingNames); ++i) {
    throttlings_[i] = &throttlings.Add({{"how", kThrottlingNames[i]}});
    waits_[i] = &waits.Add({{"how", kThrottlingNames[i]}});
  }
  auto& rejects = CounterFamily(registry, "tacho_ingest_samples_rejected_total",
                                "Values refused while their message was accepted, by reason.");
  for (int reason = 1; reason <= v1::Reject::Reason_MAX; ++reason) {
    const auto value = static_cast<v1::Reject::Reason>(reason);
    rejects_[value] = &rejects.Add({{"reason", ReasonName(value)}});
  }
}

void IngestMetrics::LossReported(uint64_t sequences, uint64_t rows) {
  lost_messages_.Increment(static_cast<double>(sequences));
  lost_rows_.Increment(static_cast<double>(rows));
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
