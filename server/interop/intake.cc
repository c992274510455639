// A request is worked through in passes over its series: places of the series that are known; new
// sheets for those that are not; rights; rows. Only then are rows handed to the store, so that a
// request that is refused as a whole leaves no sample behind.
#include "server/interop/intake.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/settling.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
std::string SenderName(absl::string_view protocol, const security::Rights& rights,
                       absl::string_view peer) {
  if (!rights.owner().empty()) return absl::StrCat(protocol, ":", rights.owner());
  return absl::StrCat(protocol, ":", peer);
}

// One request on its way to the store.
class Intake::Request {
 public:
  Request(Intake* intake, const ForeignWrite& write, security::RightsPtr rights)
      : intake_(*intake), options_(intake->options_), write_(write), rights_(std::move(rights)) {}

  // Everything that can refuse the request as a whole.
  absl::Status Prepare(const std::string& sender) {
    bucket_ = options_.quotas->BucketOfAgent(sender);
    TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), nullptr));
    generation_ = intake_.sheets_.generation();
    FindPlaces();
    if (!unknown_.empty()) TACHO_RETURN_IF_ERROR(MakeSheets(sender));
    for (const auto& [index, first] : repeated_) places_[index] = places_[first];
    TACHO_RETURN_IF_ERROR(MakeRows());
    return refused_for_time_ ? intake_.CheckClock() : absl::OkStatus();
  }
  // Hands the rows to the store.
  void Send(Done done);

 private:
  // Rows of one sheet.
  struct Rows {
    SheetPtr sheet;
    std::vector<int64_t> times;
    std::vector<double> values;
    uint64_t samples = 0;
    std::vector<std::pair<uint32_t, int64_t>> ended;  // Columns, and when.
    ingest::RowSelection selection;
  };
  struct Refused {
    uint64_t samples = 0;
    std::string example;
    std::string detail;
  };
  // By job and reason.
  using RefusedBy = std::map<std::pair<std::string, v1::Reject::Reason>, Refused>;
  // A source, and whether its series have samples of the same time: those go on one sheet.
  using SheetKey = std::tuple<std::string, std::optional<uint32_t>, uint32_t, std::string, int64_t>;
  struct NewSeries {
    size_t index = 0;  // In write_.series.
    MappedSeries mapped;
  };

  void FindPlaces();
  absl::Status MakeSheets(const std::string& sender);
  absl::Status MakeSheet(const std::vector<NewSeries>& series, size_t begin, size_t end);
  void MarkInvalid(size_t index, const absl::Status& why);
  absl::Status MakeRows();
  void AddSeries(const ForeignSeries& series, const Place& place, const ingest::TimeWindow& window);
  size_t RowAt(int64_t time_ns, Rows* rows) const;
  // Finds the layouts of all rows, which may have expired.
  absl::Status FindLayouts(std::vector<storage::LayoutPtr>* layouts);
  // The series of a layout that end at once. Those that are folded into others do not.
  static void AddEnds(const Rows& rows, const storage::LayoutPtr& layout,
                      std::vector<storage::SeriesEnd>* ends);
  void Refuse(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
              absl::string_view example, absl::string_view detail);
  void Report();

  Intake& intake_;
  const IntakeOptions& options_;
  const ForeignWrite& write_;
  const security::RightsPtr rights_;
  std::shared_ptr<edge::TokenBucket> bucket_;
  uint64_t generation_ = 0;    // Of the places.
  std::vector<Place> places_;  // One for each series.
  std::vector<size_t> unknown_;
  std::vector<std::pair<size_t, size_t>> repeated_;  // A series, and where it was first.
  std::vector<std::unique_ptr<Rows>> rows_;
  absl::flat_hash_map<const Sheet*, Rows*> rows_of_;
  Rows* last_rows_ = nullptr;  // Series of a sheet come one after the other.
  RefusedBy refused_;
  bool refused_for_time_ = false;
  std::string invalid_;  // Why the first series that is no series is none.
  WriteOutcome outcome_;
};

void Intake::Request::FindPlaces() {
  std::vector<absl::string_view> keys;
  keys.reserve(write_.series.size());
  for (const ForeignSeries& series : write_.series) keys.push_back(series.key);
  places_.reserve(keys.size());
  intake_.sheets_.FindAll(keys, &places_);
  absl::flat_hash_map<absl::string_view, size_t> seen;
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::string_view key = keys[i];
    if (places_[i].kind != Place::Kind::kUnknown) continue;
    // A sender repeats a series for each of its samples.
    const auto [first, is_new] = seen.try_emplace(key, i);
    if (is_new) {
      unknown_.push_back(i);
    } else {
      repeated_.emplace_back(i, first->second);
    }
  }
}

absl::Status Intake::Request::MakeSheets(const std::string& sender) {
  const edge::Rate rate{options_.limiting->definitions_per_second(),
                        options_.limiting->definitions_burst_ns()};
  const auto bucket = options_.quotas->DefinitionsOfAgent(sender, rate);
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
    const int64_t time = series.count == 0 ? 0 : write_.samples[series.first].time_ns;
    const storage::Source& source = mapped->source;
    auto& of_source = sources[SheetKey(source.job, source.task, source.attempt, source.host, time)];
    of_source.push_back({i, *std::move(mapped)});
  }
  for (const auto& [key, series] : sources) {
    TACHO_RETURN_IF_ERROR(
        options_.admission->CheckRights(rights_->CheckJob(std::get<0>(key), "job")));
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
    const ForeignMetric* told =
        sent.metric < 0 ? nullptr : &write_.metrics[static_cast<size_t>(sent.metric)];
    const storage::Metric metric = intake_.told_.Of(mapped.metric, told);
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

absl::Status Intake::Request::MakeRows() {
  const ingest::TimeWindow window = options_.admission->Window();
  const int64_t now_s = absl::ToUnixSeconds(options_.monotonic());
  const Sheet* checked = nullptr;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.kind == Place::Kind::kInvalid) {
      Refuse("", v1::Reject::REASON_LABEL_INVALID, write_.series[i].count, "", invalid_);
    }
    if (place.kind != Place::Kind::kStored) continue;
    if (place.sheet.get() != checked) {
      checked = place.sheet.get();
      TACHO_RETURN_IF_ERROR(
          options_.admission->CheckRights(rights_->CheckJob(checked->layout.job_name, "job")));
      TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), checked->layout.job_bucket.get()));
      checked->used_s.store(now_s, std::memory_order_relaxed);
    }
    AddSeries(write_.series[i], place, window);
  }
  return absl::OkStatus();
}

void Intake::Request::AddSeries(const ForeignSeries& series, const Place& place,
                                const ingest::TimeWindow& window) {
  const Sheet& sheet = *place.sheet;
  const std::string& job = sheet.layout.job_name;
  if (const int32_t by = sheet.refused_by[place.column]; by != Sheet::kStored) {
    const auto& why = sheet.layout.concerned[static_cast<size_t>(by)];
    Refuse(job, ingest::RejectReasonOf(why.limit), series.count, why.example, why.detail);
    return;
  }
  if (last_rows_ == nullptr || last_rows_->sheet != place.sheet) {
    Rows*& rows = rows_of_[&sheet];
    if (rows == nullptr) {
      rows = rows_.emplace_back(std::make_unique<Rows>()).get();
      rows->sheet = place.sheet;
    }
    last_rows_ = rows;
  }
  Rows* const rows = last_rows_;
  for (uint32_t i = 0; i < series.count; ++i) {
    const ForeignSample& sample = write_.samples[series.first + i];
    if (sample.time_ns < window.oldest_ns || sample.time_ns > window.newest_ns) {
      refused_for_time_ = true;
      Refuse(job,
             sample.time_ns > window.newest_ns ? v1::Reject::REASON_FUTURE
                                               : v1::Reject::REASON_TOO_OLD,
             1, sheet.layout.first_series, "");
      continue;
    }
    if (series.part == ForeignSeries::Part::kSample) ++outcome_.stored;
    if (series.part == ForeignSeries::Part::kHistogram) ++outcome_.stored_histograms;
    if (IsStaleMarker(sample.value)) {  // A row without a value says the same.
      if (write_.ends_at_once) rows->ended.emplace_back(place.column, sample.time_ns);
      continue;
    }
    rows->values[RowAt(sample.time_ns, rows) * sheet.layout.width + place.column] = sample.value;
    ++rows->samples;
  }
}

size_t Intake::Request::RowAt(int64_t time_ns, Rows* rows) const {
  // The newest rows first: the series of a sheet are sent one after the other, with the same times.
  constexpr size_t kLookBack = 64;
  const size_t size = rows->times.size();
  for (size_t back = 1; back <= std::min(size, kLookBack); ++back) {
    if (rows->times[size - back] == time_ns) return size - back;
  }
  rows->times.push_back(time_ns);
  rows->values.resize(rows->values.size() + rows->sheet->layout.width, StaleMarker());
  return size;
}

void Intake::Request::Refuse(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
                             absl::string_view example, absl::string_view detail) {
  Refused& refused = refused_[{job, reason}];
  if (refused.samples == 0) {
    refused.example = std::string(example);
    refused.detail = std::string(detail);
  }
  refused.samples += samples;
}

void Intake::Request::Report() {
  absl::MutexLock lock(&intake_.report_mutex_);
  for (auto& [key, refused] : refused_) {
    if (key.second == v1::Reject::REASON_FUTURE) refused.detail = intake_.report_.FutureDetail();
    if (key.second == v1::Reject::REASON_TOO_OLD) refused.detail = intake_.report_.TooOldDetail();
    intake_.report_.Refused(key.first, key.second, refused.samples, refused.example,
                            [&refused = refused] { return refused.detail; });
    if (outcome_.refusal.empty()) {
      outcome_.refusal =
          absl::StrCat(ingest::RejectReasonName(key.second), ": ", refused.detail,
                       refused.example.empty() ? "" : ", for example ", refused.example);
    }
    outcome_.refused += refused.samples;
  }
}

absl::Status Intake::Request::FindLayouts(std::vector<storage::LayoutPtr>* layouts) {
  for (const auto& rows : rows_) {
    const ingest::StreamLayout& layout = rows->sheet->layout;
    if (layout.id == 0 || (rows->times.empty() && rows->ended.empty())) {
      layouts->push_back(nullptr);
      continue;
    }
    storage::LayoutPtr found = layout.layout.lock();
    if (found == nullptr) {
      auto stored = options_.store->FindLayout(layout.job, layout.id);
      if (absl::IsNotFound(stored.status()) && rows->times.empty()) {
        layouts->push_back(nullptr);  // It has ended already.
        continue;
      }
      if (absl::IsNotFound(stored.status())) {
        // The sender sends the request again, and then its series get new sheets.
        intake_.sheets_.Forget(rows->sheet);
        return absl::UnavailableError(
            absl::StrCat("the job ", layout.job_name, " has expired; send again to begin it anew"));
      }
      TACHO_RETURN_IF_ERROR(stored.status());
      found = *std::move(stored);
    }
    layouts->push_back(std::move(found));
  }
  return absl::OkStatus();
}

void Intake::Request::AddEnds(const Rows& rows, const storage::LayoutPtr& layout,
                              std::vector<storage::SeriesEnd>* ends) {
  if (layout == nullptr) return;
  const ingest::StreamLayout& sent = rows.sheet->layout;
  for (const auto& [column, time_ns] : rows.ended) {
    size_t stored = column;
    if (!sent.whole) {
      const auto at = std::lower_bound(sent.columns.begin(), sent.columns.end(), column);
      if (at == sent.columns.end() || *at != column) continue;
      stored = static_cast<size_t>(at - sent.columns.begin());
    }
    ends->push_back({storage::SeriesPtr(layout, layout->series[stored]), time_ns});
  }
}

void Intake::Request::Send(Done done) {
  std::vector<storage::LayoutPtr> layouts;
  if (auto status = FindLayouts(&layouts); !status.ok()) {
    return done({.status = std::move(status)});
  }
  Report();
  std::vector<storage::SeriesEnd> ends;
  for (size_t i = 0; i < rows_.size(); ++i) AddEnds(*rows_[i], layouts[i], &ends);
  if (!ends.empty()) {
    done = [done = std::move(done), store = options_.store,
            ends = std::move(ends)](WriteOutcome outcome) {
      if (outcome.status.ok()) store->EndLatest(ends);
      done(std::move(outcome));
    };
  }
  const auto settling =
      std::make_shared<Settling>(std::move(outcome_), rows_.size() + 1, std::move(done));
  const auto settle = [settling](const absl::Status& status) { settling->Settle(status); };
  constexpr ingest::TimeWindow kAll{INT64_MIN, INT64_MAX};
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (layouts[i] == nullptr || rows_[i]->times.empty()) {
      settle(absl::OkStatus());
      continue;
    }
    Rows& rows = *rows_[i];
    rows.selection.Select({rows.times, {}, rows.values}, rows.sheet->layout, kAll);
    options_.quotas->Charge(rows.samples, bucket_.get(), rows.sheet->layout.job_bucket.get());
    options_.metrics->BatchAdmitted(rows.times.size(), rows.samples);
    options_.store->AppendRows({}, layouts[i], rows.selection.rows(), settle);
  }
  settle(absl::OkStatus());
}

absl::StatusOr<std::unique_ptr<Intake>> Intake::Create(const config::v1::Interop& config,
                                                       IntakeOptions options) {
  TACHO_ASSIGN_OR_RETURN(auto mapping, LabelMapping::Create(config));
  return std::unique_ptr<Intake>(
      new Intake(std::move(options), std::move(mapping), config.max_series()));
}

Intake::Intake(IntakeOptions options, std::shared_ptr<const LabelMapping> mapping,
               uint64_t max_series)
    : options_(std::move(options)),
      sheets_(max_series),
      report_({.admission = options_.admission,
               .metrics = options_.metrics,
               .limiting = options_.limiting,
               .log = &options_.log,
               .now = options_.now}),
      remembered_(metrics::NewGauge(options_.registry, "tacho_interop_series")),
      mapping_(std::move(mapping)) {
  TACHO_CHECK(options_.store != nullptr && options_.quotas != nullptr);
}

std::shared_ptr<const LabelMapping> Intake::mapping() const {
  absl::MutexLock lock(&mutex_);
  return mapping_;
}

absl::Status Intake::CheckRates(edge::TokenBucket* sender, edge::TokenBucket* job) const {
  const auto wait = options_.quotas->Charge(0, sender, job);
  if (wait.length <= absl::ZeroDuration()) return absl::OkStatus();
  const bool whole_job = wait.limit == edge::Quotas::Limit::kJobRate;
  return errors::ErrorOf(
      errors::Failure::kOverloaded,
      absl::StrCat(whole_job ? "the job receives" : "the sender sends", " more than quotas.",
                   whole_job ? "job" : "agent", "_samples_per_second"));
}

absl::Status Intake::CheckClock() const {
  if (options_.clock_watch == nullptr) return absl::OkStatus();
  const std::string doubt = options_.clock_watch->DoubtNow();
  return doubt.empty() ? absl::OkStatus() : errors::ErrorOf(errors::Failure::kClockDoubted, doubt);
}

absl::Status Intake::CheckOpen() const {
  TACHO_RETURN_IF_ERROR(options_.admission->CheckDraining());
  return options_.quotas->CheckNewStream();
}

void Intake::Write(const ForeignWrite& write, const std::string& sender,
                   const security::RightsPtr& rights, Done done) {
  told_.Learn(write.metrics);
  Request request(this, write, rights);
  if (auto status = request.Prepare(sender); !status.ok()) {
    return done({.status = std::move(status)});
  }
  remembered_.Set(static_cast<double>(sheets_.size()));
  request.Send(std::move(done));
}

absl::StatusOr<std::function<void()>> Intake::Prepare(const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto mapping, LabelMapping::Create(config.interop()));
  return [this, mapping, max_series = config.interop().max_series()] {
    {
      absl::MutexLock lock(&mutex_);
      mapping_ = mapping;
    }
    sheets_.SetMaxSeries(max_series);
    sheets_.ForgetAll();
  };
}

}  // namespace tacho::server::interop
