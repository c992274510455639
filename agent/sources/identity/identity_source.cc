#include "agent/sources/identity/identity_source.h"

#include <utility>

#include "absl/strings/match.h"

namespace tacho::agent {
namespace {

constexpr Metric kHostInfo = {
    "host_info", v1::METRIC_TYPE_GAUGE, "1",
    "1; the labels say what this machine is and whom it works for (docs/identity.md)."};

// Labels that are the source's, or a collector's own, and are refused in a series.
bool IsReserved(absl::string_view label) {
  return label == "job" || label == "task" || label == "host" || label == "overflow" ||
         absl::StartsWith(label, "__");
}

}  // namespace

IdentitySource::IdentitySource(IdentitySourceOptions options)
    : options_(std::move(options)),
      log_("identity", options_.log),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kLate) {
  options_.known->Set(options_.local);
}

std::string IdentitySource::AskNow() {
  if (!options_.metadata.has_value()) return "";
  asked_ = options_.steady_now();
  MetadataFacts told = AskMetadata(*options_.metadata, kBudget);
  status_ = told.status;
  HostFacts facts = options_.local;
  facts.merge(told.facts);
  // Earlier answers stay true where the server has answered only in part this time.
  if (!status_.ok()) facts.merge(options_.known->Get());
  options_.known->Set(std::move(facts));
  return told.tpu_metrics_ports;
}

absl::Time IdentitySource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  if (!status_.ok() || options_.steady_now() - asked_ >= kAskAgain) AskNow();
  Sample sample;
  HostFacts facts = options_.known->Get();
  std::erase_if(facts, [](const auto& fact) { return IsReserved(fact.first); });
  if (!facts.empty()) sample.Add(kHostInfo, LabelsOf(facts, kMaxLabels), 1);
  log_.WarnIfLost(rows_.Write(now, sample, sink));
  return cadence_.due();
}

}  // namespace tacho::agent
