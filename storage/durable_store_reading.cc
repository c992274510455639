#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/columns/latest_of_headers.h"
#include "storage/columns/stored_view.h"
#include "storage/db/rocksdb_status.h"
#include "storage/durable_store.h"
#include "storage/index/event_record.h"

namespace tacho::storage {
namespace {

absl::Status NoJob(absl::string_view job) {
  return absl::NotFoundError(absl::StrCat("there is no job \"", job, "\""));
}

}  // namespace

std::vector<JobSummary> DurableStore::Jobs() const {
  std::vector<JobSummary> out;
  for (SeriesIndex::JobInfo& job : index_.Jobs()) {
    JobSummary summary = jobs_.Summarise(job.id);
    summary.name = std::move(job.name);
    summary.series = job.series;
    out.push_back(std::move(summary));
  }
  std::sort(out.begin(), out.end(),
            [](const JobSummary& a, const JobSummary& b) { return a.name < b.name; });
  return out;
}

std::optional<JobDetail> DurableStore::FindJob(absl::string_view job) const {
  const auto id = index_.FindJob(job);
  if (!id) return std::nullopt;
  auto described = jobs_.Describe(*id);
  auto metrics = index_.Metrics(*id);
  const auto sources = index_.SourceCounts(*id);
  for (const absl::Status& status : {described.status(), metrics.status(), sources.status()}) {
    // What cannot be read is left out; it is named when the store is opened and in the log.
    if (!status.ok()) Log(absl::StrCat("job ", job, ": ", status.ToString()));
  }
  JobDetail detail = described.ok() ? *std::move(described) : JobDetail{jobs_.Summarise(*id)};
  detail.summary.name = std::string(job);
  detail.summary.series = index_.SeriesCount(*id);
  if (metrics.ok()) detail.metrics = *std::move(metrics);
  if (!sources.ok()) return detail;
  std::map<std::pair<std::optional<uint32_t>, absl::string_view>, uint64_t> counts;
  for (const auto& [source, series] : *sources) counts[{source.task, source.host}] = series;
  for (TaskInfo& task : detail.tasks) task.series = counts[{task.task, task.host}];
  return detail;
}

absl::StatusOr<std::vector<AttemptInfo>> DurableStore::Attempts(absl::string_view job) const {
  const auto id = index_.FindJob(job);
  if (!id) return std::vector<AttemptInfo>();
  return jobs_.Attempts(*id);
}

absl::StatusOr<JobEntities> DurableStore::Entities(absl::string_view job) const {
  const auto id = index_.FindJob(job);
  if (!id) return NoJob(job);
  return index_.Entities(*id);
}

absl::StatusOr<std::vector<MetricUse>> DurableStore::Metrics(absl::string_view job) const {
  const auto id = index_.FindJob(job);
  if (!id) return NoJob(job);
  return index_.MetricUses(*id);
}

absl::StatusOr<JobOutline> DurableStore::Outline(absl::string_view job, bool hosts) const {
  const auto id = index_.FindJob(job);
  if (!id) return NoJob(job);
  const auto metrics = index_.CountMetrics(*id);
  if (!metrics.ok()) return metrics.status();
  auto outline = jobs_.Outline(*id, hosts);
  if (outline.ok()) outline->metrics = *metrics;
  return outline;
}

std::unique_ptr<StoredView> DurableStore::OpenStoredView(
    const std::vector<SeriesPtr>& series) const {
  CapturedRows open_rows;
  for (const SeriesPtr& one : series) open_rows.Add(one->id, head_.Capture(*one));
  return std::make_unique<StoredView>(*database_, &columns_, std::move(open_rows));
}

std::unique_ptr<ReadView> DurableStore::OpenView(std::vector<SeriesPtr> series) const {
  return OpenStoredView(series);
}

absl::StatusOr<std::vector<std::optional<LatestSample>>> DurableStore::LatestOf(
    const std::vector<SeriesPtr>& series) const {
  std::vector<std::optional<LatestSample>> latest(series.size());
  std::vector<size_t> unknown;
  for (size_t i = 0; i < series.size(); ++i) {
    latest[i] = head_.Latest(series[i]);
    if (latest[i] && latest[i]->time_ns > head_knows_after_ns_) continue;
    unknown.push_back(i);
  }
  std::vector<SeriesPtr> to_read;
  for (const size_t i : unknown) to_read.push_back(series[i]);
  const std::unique_ptr<StoredView> view = OpenStoredView(to_read);
  for (const size_t i : unknown) {
    TACHO_ASSIGN_OR_RETURN(auto read, ReadLatest(view.get(), series[i]));
    latest[i] = std::move(read);
  }
  return latest;
}

absl::StatusOr<std::optional<LatestSample>> DurableStore::ReadLatest(
    StoredView* view, const SeriesPtr& series) const {
  TACHO_ASSIGN_OR_RETURN(const auto last, jobs_.LastTime(*series));
  const std::optional<int64_t>& newest = last;
  if (!newest) return std::optional<LatestSample>();
  auto told = LatestOfHeaders(view, series, *newest);
  if (!told.ok() || *told) return told;
  // Most series have a value near their task's newest row; those that do not are read further back.
  for (int64_t reach = int64_t{1'000'000'000} * 60;; reach *= 60) {
    const bool everything = reach > 30 * kDayNs || *newest < INT64_MIN + reach;
    ReadOptions options;
    options.begin_ns = everything ? INT64_MIN : *newest - reach;
    const auto reader = view->Read(series, options);
    std::optional<LatestSample> latest;
    Chunk chunk;
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(const auto more, reader->Next(AnySummary(), &chunk));
      if (!more) break;
      latest = LastOf(series, chunk);
    }
    if (latest || everything) return latest;
  }
}

absl::Status DurableStore::VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                                       EventOrder order,
                                       absl::FunctionRef<bool(Event)> visit) const {
  const auto id = job.empty() ? std::optional<JobId>(kNoJob) : index_.FindJob(job);
  if (!id) return absl::OkStatus();
  return VisitEventsOf(rocksdb::ReadOptions(), *id, job, begin_ns, end_ns, order, visit);
}

absl::Status DurableStore::VisitEventsOf(const rocksdb::ReadOptions& read, JobId id,
                                         absl::string_view job, int64_t begin_ns, int64_t end_ns,
                                         EventOrder order,
                                         absl::FunctionRef<bool(Event)> visit) const {
  const bool newest_first = order == EventOrder::kNewestFirst;
  const std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(read, database_->events));
  if (!newest_first) {
    it->Seek(EventKey(id, begin_ns, 0));
  } else {
    // Numbers count from 1: no event has the key of its very end.
    it->SeekForPrev(EventKey(id, end_ns, end_ns == INT64_MAX ? UINT64_MAX : 0));
  }
  for (; it->Valid(); newest_first ? it->Prev() : it->Next()) {
    ByteReader key(View(it->key()));
    if (key.Be32() != id) break;
    const int64_t time_ns = key.BeTime();
    if (newest_first ? time_ns < begin_ns : time_ns >= end_ns && end_ns != INT64_MAX) break;
    auto event = DecodeEvent(View(it->value()));
    if (!event) return absl::DataLossError("the event " + it->key().ToString(true) + " is damaged");
    event->source.job = std::string(job);
    event->time_ns = time_ns;
    if (!visit(*std::move(event))) return absl::OkStatus();
  }
  return FromRocksDb(it->status(), "read events");
}

}  // namespace tacho::storage
