// Answers from the index alone. Only a condition on attempts makes it read series, as the index
// does not know which attempts a series has samples of.
#include "server/query/lists/listings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/host_part.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"
#include "storage/index/matcher.h"

namespace tacho::server::query {
namespace {

// Series whose newest samples are read between two looks at the query's control.
constexpr size_t kSeriesAtOnce = 1000;
// More than a member has in memory.
constexpr uint64_t kMaxSeriesOfPart = uint64_t{1} << 30;

uint64_t SeriesLimit(uint64_t asked, uint64_t most) {
  return std::min(asked == 0 ? kDefaultListedSeries : asked, most);
}

// `newest` of a series if its attempt is allowed, else the newest sample of one that is.
absl::StatusOr<std::optional<storage::LatestSample>> NewestAllowed(
    const storage::Store& store, const storage::SeriesPtr& series,
    std::optional<storage::LatestSample> newest, const AttemptCondition& attempts,
    const QueryControl& control) {
  if (!newest.has_value() || attempts.Allows(newest->attempt)) return newest;
  std::optional<storage::LatestSample> found;
  storage::ReadOptions read;
  read.attempt = attempts.only();
  SeriesScan scan(store.Read(series, read), attempts, control);
  TACHO_RETURN_IF_ERROR(scan.ForEach(storage::AnySummary(), [&](const storage::Chunk& chunk) {
    found = storage::LastOf(series, chunk);
  }));
  return found;
}

// Counts series by value, and refuses more values than there may be.
class ValueCounts {
 public:
  explicit ValueCounts(uint64_t most) : most_(most) {}

  absl::Status Add(absl::string_view value, uint64_t series) {
    const auto found = counts_.find(value);
    if (found != counts_.end()) {
      found->second += series;
      return absl::OkStatus();
    }
    if (counts_.size() >= most_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are more than max_values = ", most_,
                       " values: name metrics, add matchers, or raise max_values"));
    }
    counts_.emplace(value, series);
    return absl::OkStatus();
  }

  // Ascending, or as numbers.
  void Fill(bool as_numbers, v1::LabelValuesResponse* response) const {
    std::vector<std::pair<absl::string_view, uint64_t>> sorted(counts_.begin(), counts_.end());
    std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
      if (as_numbers && a.first.size() != b.first.size()) return a.first.size() < b.first.size();
      return a.first < b.first;
    });
    for (const auto& [value, series] : sorted) {
      v1::LabelValue* proto = response->add_values();
      proto->set_value(std::string(value));
      proto->set_series(series);
    }
  }

 private:
  const uint64_t most_;
  absl::flat_hash_map<std::string, uint64_t> counts_;
};

// Adds what the request asks of one series.
absl::Status AddSeries(const storage::Series& series, absl::string_view label,
                       ValueCounts* counts) {
  if (label.empty()) {
    absl::Status status;
    for (const auto& [name, value] : *series.labels) status.Update(counts->Add(name, 1));
    return status;
  }
  if (label == "metric") return counts->Add(series.metric->name, 1);
  if (label == "host") return counts->Add(series.source->host, 1);
  if (label == "task") {
    if (!series.source->task.has_value()) return absl::OkStatus();
    return counts->Add(absl::StrCat(*series.source->task), 1);
  }
  const absl::string_view value = series.labels->Find(label);
  return value.empty() ? absl::OkStatus() : counts->Add(value, 1);
}

absl::Status AddAttempts(const storage::Store& store, const Selection& selection,
                         ValueCounts* counts) {
  const auto attempts = store.Attempts(selection.selector.job);
  if (!attempts.ok()) return attempts.status();
  absl::Status status;
  for (const storage::AttemptInfo& info : *attempts) {
    if (!selection.attempts.Allows(info.attempt)) continue;
    status.Update(counts->Add(absl::StrCat(info.attempt), 0));
  }
  return status;
}

constexpr uint32_t kMaxTop = 1000;

void Fill(const std::string& job, absl::string_view name, uint64_t used, uint64_t limit,
          v1::CardinalityUse* use) {
  use->set_job(job);
  use->set_name(std::string(name));
  use->set_used(used);
  use->set_limit(limit);
}

void Fill(const limits::Refusals& refusals, v1::CardinalityRefusal* out) {
  out->set_job(refusals.job);
  out->set_name(refusals.name);
  out->set_limit(std::string(storage::LimitKey(refusals.limit)));
  out->set_action(std::string(storage::ActionName(refusals.action)));
  out->set_series(refusals.series);
  out->set_too_many(refusals.too_many);
  out->set_example(refusals.example);
  out->set_detail(refusals.detail);
  out->set_last_unix_ns(absl::ToUnixNanos(refusals.last));
}

// The metrics of a part of the job's hosts, from its series.
absl::Status MetricsOfPart(const storage::Store& store, const v1::ListMetricsRequest& request,
                           const std::optional<storage::Matcher>& pattern,
                           v1::ListMetricsResponse* response) {
  Selection selection;
  selection.selector.job = request.job();
  TACHO_ASSIGN_OR_RETURN(selection.part, ReadHostPart(request.part(), "part"));
  TACHO_ASSIGN_OR_RETURN(const auto all, FindSelected(store, selection, kMaxSeriesOfPart));
  std::set<std::string> labels;
  v1::MetricUse* use = nullptr;
  const auto end = [&] {
    if (use != nullptr) use->mutable_labels()->Add(labels.begin(), labels.end());
    labels.clear();
  };
  const storage::Metric* metric = nullptr;
  for (const storage::SeriesPtr& one : all) {  // By metric.
    if (pattern.has_value() && !pattern->MatchesValue(one->metric->name)) continue;
    if (one->metric != metric) {
      end();
      metric = one->metric;
      use = response->add_metrics();
      ToProto(*metric, use->mutable_metric());
    }
    use->set_series(use->series() + 1);
    for (const auto& [name, value] : *one->labels) labels.emplace(name);
  }
  end();
  return absl::OkStatus();
}

}  // namespace

absl::Status ListSeries(const storage::Store& store, const v1::ListSeriesRequest& request,
                        uint64_t max_series, const QueryControl& control,
                        Send<v1::ListSeriesResponse> send) {
  TACHO_ASSIGN_OR_RETURN(Selection selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(
      auto all, FindSelected(store, selection, SeriesLimit(request.max_series(), max_series)));
  MessagePacking<v1::ListSeriesResponse> packing(/*packed=*/true, send);
  for (const storage::SeriesPtr& series : all) {
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_ASSIGN_OR_RETURN(bool listed, HasSample(store, series, selection.attempts, control));
    if (!listed) continue;
    v1::SeriesInfo* info = packing.message()->add_series();
    ToProto(*series, info);
    TACHO_RETURN_IF_ERROR(packing.Added(info->ByteSizeLong()));
  }
  return packing.Flush();
}

absl::Status Latest(const storage::Store& store, const v1::LatestRequest& request,
                    uint64_t max_series, const QueryControl& control,
                    Send<v1::LatestResponse> send) {
  TACHO_ASSIGN_OR_RETURN(Selection selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(
      auto all, FindSelected(store, selection, SeriesLimit(request.max_series(), max_series)));
  MessagePacking<v1::LatestResponse> packing(/*packed=*/true, send);
  std::vector<storage::SeriesPtr> chunk;
  std::vector<std::optional<storage::LatestSample>> latest;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % kSeriesAtOnce == 0) {
      TACHO_RETURN_IF_ERROR(control.Check());
      const auto begin = all.begin() + static_cast<ptrdiff_t>(i);
      chunk.assign(begin, begin + static_cast<ptrdiff_t>(std::min(kSeriesAtOnce, all.size() - i)));
      TACHO_ASSIGN_OR_RETURN(auto read, store.LatestOf(chunk));
      latest = std::move(read);
    }
    const storage::SeriesPtr& series = all[i];
    TACHO_ASSIGN_OR_RETURN(auto newest,
                           NewestAllowed(store, series, std::move(latest[i % kSeriesAtOnce]),
                                         selection.attempts, control));
    if (!newest.has_value()) continue;
    v1::LatestSample* sample = packing.message()->add_samples();
    ToProto(*series, sample->mutable_series());
    sample->set_time_unix_ns(newest->time_ns);
    if (newest->step != storage::kNoStep) sample->set_step(newest->step);
    sample->set_attempt(newest->attempt);
    sample->set_value(newest->value);
    TACHO_RETURN_IF_ERROR(packing.Added(sample->ByteSizeLong()));
  }
  return packing.Flush();
}

absl::Status ListMetrics(const storage::Store& store, const v1::ListMetricsRequest& request,
                         v1::ListMetricsResponse* response) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  std::optional<storage::Matcher> pattern;
  if (!request.name_pattern().empty()) {
    auto made =
        storage::Matcher::Create("metric", storage::Matcher::Op::kMatches, request.name_pattern());
    if (!made.ok()) return errors::InvalidFieldError("name_pattern", made.status().message());
    pattern = *std::move(made);
  }
  if (request.has_part()) return MetricsOfPart(store, request, pattern, response);
  const auto uses = store.Metrics(request.job());
  if (absl::IsNotFound(uses.status())) return NoSuchJob(store, request.job());
  if (!uses.ok()) return uses.status();
  for (const storage::MetricUse& use : *uses) {
    if (pattern.has_value() && !pattern->MatchesValue(use.metric.name)) continue;
    v1::MetricUse* proto = response->add_metrics();
    ToProto(use.metric, proto->mutable_metric());
    proto->set_series(use.series);
    proto->mutable_labels()->Add(use.labels.begin(), use.labels.end());
  }
  return absl::OkStatus();
}

absl::Status LabelValues(const storage::Store& store, const v1::LabelValuesRequest& request,
                         uint64_t max_series, const QueryControl& control,
                         v1::LabelValuesResponse* response) {
  TACHO_ASSIGN_OR_RETURN(auto selection, MakeSelection(request.selector()));
  const auto series = FindSelected(store, selection, max_series);
  if (!series.ok()) return series.status();
  const std::string& label = request.label();
  ValueCounts counts(request.max_values() == 0 ? kDefaultLabelValues : request.max_values());
  if (label == "attempt") {
    TACHO_RETURN_IF_ERROR(AddAttempts(store, selection, &counts));
  }
  for (const storage::SeriesPtr& one : *series) {
    if (label == "attempt") break;  // A series belongs to none.
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_ASSIGN_OR_RETURN(const auto selected, HasSample(store, one, selection.attempts, control));
    if (!selected) continue;
    TACHO_RETURN_IF_ERROR(AddSeries(*one, label, &counts));
  }
  counts.Fill(label == "attempt" || label == "task", response);
  return absl::OkStatus();
}

absl::Status Cardinality(const storage::Store& store, const limits::RefusalLedger* refusals,
                         const v1::CardinalityRequest& request, v1::CardinalityResponse* response) {
  if (request.top() > kMaxTop) {
    return absl::InvalidArgumentError(
        absl::StrCat("top: ", request.top(), " is more than ", kMaxTop));
  }
  const size_t top = request.top() == 0 ? kDefaultTop : request.top();
  if (refusals != nullptr) {
    for (const limits::Refusals& one : refusals->Top(request.job(), top)) {
      Fill(one, response->add_refusals());
    }
  }
  // A job that was refused altogether is not there, and has refusals all the same.
  const bool refused_only = response->refusals_size() > 0 && !request.job().empty() &&
                            !store.FindJob(request.job()).has_value();
  if (refused_only) return absl::OkStatus();
  const auto report = store.Cardinality(request.job(), top);
  if (absl::IsNotFound(report.status())) return NoSuchJob(store, request.job());
  if (!report.ok()) return report.status();
  for (const auto& one : report->totals) {
    Fill("", storage::LimitKey(one.limit), one.used, one.bound, response->add_totals());
  }
  for (const auto& one : report->jobs) {
    Fill(one.name, "", one.series, one.bound, response->add_jobs());
  }
  for (const auto& one : report->metrics) {
    Fill(one.job, one.metric, one.series, one.bound, response->add_metrics());
  }
  for (const auto& one : report->labels) {
    Fill(one.job, one.name, one.values, one.bound, response->add_labels());
  }
  response->set_jobs_left_out(report->jobs_left_out);
  return absl::OkStatus();
}

}  // namespace tacho::server::query
