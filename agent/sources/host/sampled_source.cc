#include "agent/sources/host/sampled_source.h"

#include <cstdint>
#include <utility>

namespace tacho::agent {
SampledSource::SampledSource(SampledSourceOptions options, Take take)
    : options_(std::move(options)),
      take_(std::move(take)),
      log_(options_.name, options_.log),
      cadence_(options_.interval),
      rows_(options_.job, options_.host, SeriesRows::Leaves::kNextLayout) {}

absl::Time SampledSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  Sample sample;
  status_ = take_(&sample);
  uint64_t left_out = 0;
  log_.WarnIfLost(rows_.Write(now, sample, &budget_, sink, &left_out));
  if (left_out > 0) {
    log_.Warn("leaves out new series, which change too often", {{"series", left_out}});
  }
  return cadence_.due();
}

}  // namespace tacho::agent
