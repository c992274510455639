#include "agent/sources/host/sampled_source.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

v1::Source SourceOf(const SampledSourceOptions& options) {
  v1::Source source;
  source.set_job(options.job);
  source.set_host(options.host);
  return source;
}

}  // namespace

v1::Layout::Series SeriesOf(const HostSample::Entry& entry) {
  v1::Layout::Series series;
  series.mutable_metric()->set_name(entry.metric->name);
  series.mutable_metric()->set_type(entry.metric->type);
  series.mutable_metric()->set_unit(entry.metric->unit);
  series.mutable_metric()->set_help(entry.metric->help);
  if (entry.metric->label != nullptr) {
    v1::Label* const label = series.add_labels();
    label->set_name(entry.metric->label);
    label->set_value(entry.label);
  }
  return series;
}

SampledSource::SampledSource(SampledSourceOptions options, Take take)
    : options_(std::move(options)),
      take_(std::move(take)),
      log_(options_.name, options_.log),
      cadence_(options_.interval),
      rows_(SourceOf(options_)) {}

absl::Time SampledSource::Poll(absl::Time now, RowSink* sink) {
  if (!cadence_.TakeDue(now)) return cadence_.due();
  HostSample sample;
  status_ = take_(&sample);
  for (const HostSample::Entry& entry : sample.entries()) rows_.Add(SeriesOf(entry), entry.value);
  uint64_t left_out = 0;
  const absl::Status written = rows_.Write(now, &budget_, sink, &left_out);
  if (!written.ok()) {
    log_.Say(now, "refused", absl::StrCat("a sample is lost: ", written.ToString()));
  }
  if (left_out > 0) {
    log_.Say(now, "changing",
             absl::StrCat(left_out, " new series are left out: they change too often"));
  }
  return cadence_.due();
}

}  // namespace tacho::agent
