// Finds the places of a request's series, and makes sheets for those that are new: their labels are
// mapped, series of one source and time share a sheet, and the store gets its layout.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/intake_request.h"

namespace tacho::server::interop {

void Intake::Request::FindPlaces() {
  places_.reserve(write_.series.size());
  intake_.sheets_.FindAll(write_.series, &places_);
  absl::flat_hash_map<absl::string_view, size_t> seen;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].kind != Place::Kind::kUnknown) continue;
    const absl::string_view key = write_.series[i].key;
    // A sender repeats a series for each of its samples.
    const auto [first, is_new] = seen.try_emplace(key, i);
    if (is_new) {
      unknown_.push_back(i);
    } else {
      repeated_.emplace_back(i, first->second);
    }
  }
}

absl::Status Intake::Request::MakeSheets() {
  const edge::Rate rate{options_.limiting->definitions_per_second(),
                        options_.limiting->definitions_burst_ns()};
  const auto bucket = options_.quotas->DefinitionsOfAgent(sender_.Name(), rate);
  const int64_t now_ns = absl::ToUnixNanos(options_.monotonic());
  if (bucket->Take(0, rate, now_ns) > 0) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           "the sender defines series faster than limits.definitions_per_second");
  }
  const auto mapping = intake_.mapping();
  std::map<SheetKey, std::vector<NewSeries>> sources;
  for (const size_t i : unknown_) {
    const ForeignSeries& series = write_.series[i];
    TACHO_ASSIGN_OR_RETURN(auto labels, LabelsOfKey(series.key));
    auto mapped = mapping->Map(std::move(labels));
    if (!mapped.ok()) {
      MarkInvalid(i, mapped.status());
      continue;
    }
    if (mapped->dropped) {
      places_[i].kind = Place::Kind::kDropped;
      intake_.sheets_.Put(series.key, places_[i], generation_);
      continue;
    }
    if (const auto shard = ShardElsewhere(mapped->source); shard.has_value()) {
      places_[i].kind = Place::Kind::kElsewhere;
      places_[i].column = *shard;
      intake_.sheets_.Put(series.key, places_[i], generation_);
      continue;
    }
    const int64_t time = series.count == 0 ? 0 : write_.samples[series.first].time_ns;
    const storage::Source& source = mapped->source;
    auto& of_source = sources[SheetKey(source.job, source.task, source.attempt, source.host, time)];
    of_source.push_back({i, *std::move(mapped)});
  }
  for (const auto& [key, series] : sources) {
    TACHO_RETURN_IF_ERROR(
        options_.admission->CheckRights(sender_.rights->CheckJob(std::get<0>(key), "job")));
  }
  bucket->Take(unknown_.size(), rate, now_ns);
  const ingest::IngestLimits& limits = options_.admission->limits();
  const size_t columns = std::min<uint64_t>(
      {Sheet::kColumns, limits.max_series_per_layout(), limits.max_columns_per_stream()});
  for (const auto& [key, series] : sources) {
    for (size_t begin = 0; begin < series.size(); begin += columns) {
      TACHO_RETURN_IF_ERROR(MakeSheet(series, begin, std::min(series.size(), begin + columns)));
    }
  }
  return absl::OkStatus();
}

void Intake::Request::MarkInvalid(size_t index, const absl::Status& why) {
  if (invalid_.empty()) invalid_ = std::string(why.message());
  places_[index].kind = Place::Kind::kInvalid;  // Not remembered: the next request hears it again.
}

std::optional<uint32_t> Intake::Request::ShardElsewhere(const storage::Source& source) const {
  const cluster::Membership* const membership = options_.admission->membership();
  if (membership == nullptr || membership->Keeps(source.job, source.host)) return std::nullopt;
  return membership->ShardOf(source.job, source.host);
}

void Intake::Request::RefuseElsewhere(const ForeignSeries& series) {
  elsewhere_ += series.count;
  if (!elsewhere_example_.empty()) return;
  // The place does not say which job: a request may have a hundred thousand of them.
  if (auto labels = LabelsOfKey(series.key); labels.ok()) {
    const auto mapped = intake_.mapping()->Map(*std::move(labels));
    if (!mapped.ok()) return;
    const storage::Source& source = mapped->source;
    const auto keeps = options_.admission->membership()->CheckKeeps(source.job, source.host);
    elsewhere_example_ = std::string(keeps.message());
  }
}

absl::Status Intake::Request::MakeSheet(const std::vector<NewSeries>& series, size_t begin,
                                        size_t end) {
  // Two keys may mean one series, which may stand on a sheet once; the second goes to where the
  // first is.
  std::map<std::pair<std::string, storage::Labels>, uint32_t> columns;
  v1::Layout layout;
  std::vector<uint32_t> column_of;
  const storage::Source& source = series[begin].mapped.source;
  for (size_t i = begin; i < end; ++i) {
    const MappedSeries& mapped = series[i].mapped;
    const auto [known, is_new] = columns.try_emplace({mapped.metric, mapped.labels},
                                                     static_cast<uint32_t>(layout.series_size()));
    column_of.push_back(known->second);
    if (!is_new) continue;
    const ForeignSeries& sent = write_.series[series[i].index];
    const storage::Metric metric = intake_.told_.Of(mapped.metric, sent.metric);
    v1::Layout::Series* const column = layout.add_series();
    column->mutable_metric()->set_name(metric.name);
    column->mutable_metric()->set_type(static_cast<v1::MetricType>(metric.type));
    column->mutable_metric()->set_unit(metric.unit);
    column->mutable_metric()->set_help(metric.help);
    for (const auto& [name, value] : mapped.labels) {
      v1::Label* const label = column->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
  }
  layout.mutable_source()->set_job(source.job);
  layout.mutable_source()->set_host(source.host);
  layout.mutable_source()->set_attempt(source.attempt);
  if (source.task.has_value()) layout.mutable_source()->set_task(*source.task);
  auto admitted_or = options_.admission->AdmitLayout(layout, 0);
  if (absl::IsInvalidArgument(admitted_or.status())) {
    // A job or host that breaks the rules on texts.
    for (size_t i = begin; i < end; ++i) MarkInvalid(series[i].index, admitted_or.status());
    return absl::OkStatus();
  }
  TACHO_ASSIGN_OR_RETURN(const auto admitted, std::move(admitted_or));
  storage::Registration registration;
  if (!admitted.definition.series.empty()) {
    TACHO_ASSIGN_OR_RETURN(registration, options_.store->RegisterLayout(admitted.definition));
  }
  auto sheet = std::make_shared<Sheet>();
  const auto breaches = registration.breaches;
  sheet->layout = ingest::StreamLayout::Of(admitted, std::move(registration));
  sheet->layout.job_name = source.job;
  sheet->layout.job_bucket = options_.quotas->BucketOfJob(source.job);
  sheet->MarkRefused(admitted, breaches);
  {
    absl::MutexLock lock(&intake_.report_mutex_);
    intake_.report_.LayoutDefined(source.job, sheet->layout);
  }
  for (size_t i = begin; i < end; ++i) {
    Place& place = places_[series[i].index];
    place = {Place::Kind::kStored, column_of[i - begin], sheet};
    intake_.sheets_.Put(write_.series[series[i].index].key, place, generation_);
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::interop
