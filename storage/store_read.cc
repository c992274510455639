// What a store answers: each method joins the catalogue, the head and the columns of one moment. A
// view captures the open rows before it takes its snapshot of the columns, so that rows which are
// sealed meanwhile are seen twice, which merging undoes, and never missed.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/columns/column_cache.h"
#include "storage/columns/stored_view.h"
#include "storage/db/rocksdb_status.h"
#include "storage/engine.h"
#include "storage/index/events.h"

namespace tacho::storage {
namespace {

absl::Status NoJob(absl::string_view job) {
  return absl::NotFoundError(absl::StrCat("there is no job \"", job, "\""));
}

// A day of so many series is some megabytes, at a row a second: worth fetching in long runs from a
// bucket. Days of fewer rows are mostly smaller than one run.
constexpr size_t kMuchFromSeries = 32;

std::unique_ptr<StoredView> OpenStoredView(Engine* engine, const std::vector<SeriesPtr>& series) {
  CapturedRows open_rows;
  for (const SeriesPtr& one : series) open_rows.Add(one->id, engine->head.Capture(*one));
  return std::make_unique<StoredView>(
      *engine->database, engine->elsewhere(), &engine->columns, std::move(open_rows),
      series.size() < kMuchFromSeries ? ReadAmount::kLittle : ReadAmount::kMuch);
}

// The id of a job that is about to be read: its rows are all in the head then. nullopt if there is
// no such job.
std::optional<JobId> FindToRead(Engine* engine, absl::string_view job) {
  const auto id = engine->index.FindJob(job);
  if (!id) return std::nullopt;
  const absl::Status status = engine->BringLateRows(*id);
  if (!status.ok()) engine->Log(absl::StrCat("job ", job, ": ", status.ToString()));
  return id;
}

// The partition of a time's day; nullopt if there is none.
std::optional<size_t> PartitionOf(const StoredView& view, int64_t time_ns) {
  const auto& partitions = view.partitions();
  for (size_t i = partitions.size(); i > 0; --i) {
    if (partitions[i - 1].day() == DayOf(time_ns)) return i - 1;
  }
  return std::nullopt;
}

// `newest_ns`: no sample of the series is newer. Nullopt where headers leave it open: rows that are
// not sealed, two columns that end at the same time, a last row without a value, none on that day.
//   DATA_LOSS  a column is damaged.
absl::StatusOr<std::optional<LatestSample>> LatestOfHeaders(StoredView* view,
                                                            const SeriesPtr& series,
                                                            int64_t newest_ns) {
  std::optional<LatestSample> latest;
  const auto partition = PartitionOf(*view, newest_ns);
  if (!partition || !view->FindOpenRows(*series).empty()) return latest;
  StoredView::MetBytes met;
  const auto columns = view->FindColumns(*partition, *series, {.begin_ns = INT64_MAX}, &met);
  if (!columns.ok()) return columns.status();
  const ColumnInfo* last = nullptr;
  bool tied = false;  // Another ends at the same time.
  for (const ColumnInfo& column : (*columns)->columns()) {
    if (last != nullptr && column.last_time_ns < last->last_time_ns) continue;
    tied = last != nullptr && column.last_time_ns == last->last_time_ns;
    last = &column;
  }
  if (last == nullptr || tied || last->stats.count != last->rows) return latest;
  TACHO_ASSIGN_OR_RETURN(const auto ends, view->FindTimeColumnEnds(*partition, *series, *last));
  latest = LatestSample{series, last->last_time_ns, ends.last_step, ends.attempt, last->stats.last};
  return latest;
}

absl::StatusOr<std::optional<LatestSample>> ReadLatest(Engine* engine, StoredView* view,
                                                       const SeriesPtr& series) {
  TACHO_ASSIGN_OR_RETURN(const auto last, engine->jobs.LastTime(*series));
  const std::optional<int64_t>& newest = last;
  if (!newest) return std::optional<LatestSample>();
  auto found = LatestOfHeaders(view, series, *newest);
  if (!found.ok() || *found) return found;
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

absl::Status VisitEventsOf(Engine* engine, const rocksdb::ReadOptions& read, JobId id,
                           absl::string_view job, int64_t begin_ns, int64_t end_ns,
                           Store::EventOrder order, absl::FunctionRef<bool(Event)> visit) {
  const bool newest_first = order == Store::EventOrder::kNewestFirst;
  const std::unique_ptr<rocksdb::Iterator> it(
      engine->database->db->NewIterator(read, engine->database->events));
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

class StoredJobView final : public JobView {
 public:
  // `id` is nullopt if there was no such job.
  StoredJobView(Engine* engine, std::string job, std::optional<JobId> id, CapturedRows open_rows)
      : engine_(engine),
        job_(std::move(job)),
        id_(id),
        view_(*engine->database, engine->elsewhere(), &engine->columns, std::move(open_rows),
              ReadAmount::kLittle) {}

  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) override {
    return view_.Read(series, options);
  }

  absl::StatusOr<std::vector<Event>> Events(int64_t begin_ns, int64_t end_ns) const override {
    std::vector<Event> events;
    if (!id_) return events;
    rocksdb::ReadOptions read;
    read.snapshot = view_.snapshot();
    absl::Status status = VisitEventsOf(engine_, read, *id_, job_, begin_ns, end_ns,
                                        Store::EventOrder::kOldestFirst, [&](Event event) {
                                          events.push_back(std::move(event));
                                          return true;
                                        });
    if (!status.ok()) return status;
    return events;
  }

 private:
  Engine* const engine_;
  const std::string job_;
  const std::optional<JobId> id_;
  StoredView view_;
};

// Between commits.
std::unique_ptr<JobView> CaptureJob(Engine* engine, absl::string_view job) {
  const auto id = engine->index.FindJob(job);
  CapturedRows open_rows;
  if (id) open_rows.Add(engine->head.CaptureJob(*id));
  return std::make_unique<StoredJobView>(engine, std::string(job), id, std::move(open_rows));
}

}  // namespace

std::vector<JobSummary> Store::Jobs() const {
  std::vector<JobSummary> out;
  for (SeriesIndex::JobInfo& job : engine_->index.Jobs()) {
    JobSummary summary = engine_->jobs.Summarise(job.id);
    summary.name = std::move(job.name);
    summary.series = job.series;
    out.push_back(std::move(summary));
  }
  std::sort(out.begin(), out.end(),
            [](const JobSummary& a, const JobSummary& b) { return a.name < b.name; });
  return out;
}

std::optional<JobDetail> Store::FindJob(absl::string_view job) const {
  const auto id = FindToRead(engine_.get(), job);
  if (!id) return std::nullopt;
  auto described = engine_->jobs.Describe(*id);
  auto metrics = engine_->index.Metrics(*id);
  const auto sources = engine_->index.SourceCounts(*id);
  for (const absl::Status& status : {described.status(), metrics.status(), sources.status()}) {
    // What cannot be read is left out; it is named when the store is opened and in the log.
    if (!status.ok()) engine_->Log(absl::StrCat("job ", job, ": ", status.ToString()));
  }
  JobDetail detail =
      described.ok() ? *std::move(described) : JobDetail{engine_->jobs.Summarise(*id)};
  detail.summary.name = std::string(job);
  detail.summary.series = engine_->index.SeriesCount(*id);
  if (metrics.ok()) detail.metrics = *std::move(metrics);
  if (!sources.ok()) return detail;
  std::map<std::pair<std::optional<uint32_t>, absl::string_view>, uint64_t> counts;
  for (const auto& [source, series] : *sources) counts[{source.task, source.host}] = series;
  for (TaskInfo& task : detail.tasks) task.series = counts[{task.task, task.host}];
  return detail;
}

absl::StatusOr<std::vector<AttemptInfo>> Store::Attempts(absl::string_view job) const {
  const auto id = FindToRead(engine_.get(), job);
  if (!id) return std::vector<AttemptInfo>();
  return engine_->jobs.Attempts(*id);
}

absl::StatusOr<JobEntities> Store::Entities(absl::string_view job) const {
  const auto id = FindToRead(engine_.get(), job);
  if (!id) return NoJob(job);
  return engine_->index.Entities(*id);
}

absl::StatusOr<std::vector<MetricUse>> Store::Metrics(absl::string_view job) const {
  const auto id = engine_->index.FindJob(job);
  if (!id) return NoJob(job);
  return engine_->index.MetricUses(*id);
}

absl::StatusOr<JobOutline> Store::Outline(absl::string_view job, bool hosts) const {
  const auto id = engine_->index.FindJob(job);
  if (!id) return NoJob(job);
  const auto metrics = engine_->index.CountMetrics(*id);
  if (!metrics.ok()) return metrics.status();
  auto outline = engine_->jobs.Outline(*id, hosts);
  if (outline.ok()) outline->metrics = *metrics;
  return outline;
}

absl::StatusOr<std::vector<SeriesPtr>> Store::FindSeries(const Selector& selector,
                                                         size_t limit) const {
  const auto id = engine_->index.FindJob(selector.job);
  if (id) TACHO_RETURN_IF_ERROR(engine_->BringLateRows(*id));
  return engine_->index.Find(selector, limit);
}

absl::StatusOr<CardinalityReport> Store::Cardinality(absl::string_view job, size_t top) const {
  return engine_->index.Cardinality(job, top);
}

std::unique_ptr<ReadView> Store::OpenView(std::vector<SeriesPtr> series) const {
  return OpenStoredView(engine_.get(), series);
}

std::unique_ptr<JobView> Store::OpenJobView(absl::string_view job) const {
  std::unique_ptr<JobView> view;
  FindToRead(engine_.get(), job);
  engine_->committer.BetweenCommits([&] { view = CaptureJob(engine_.get(), job); });
  return view;
}

std::unique_ptr<Subscription> Store::Subscribe(SubscribeOptions options,
                                               std::unique_ptr<JobView>* view) const {
  std::unique_ptr<Subscription> subscription;
  if (view != nullptr) FindToRead(engine_.get(), options.job);
  engine_->committer.BetweenCommits([&] {
    if (view != nullptr) *view = CaptureJob(engine_.get(), options.job);
    subscription = engine_->feed.Subscribe(std::move(options));
  });
  return subscription;
}

std::unique_ptr<SeriesReader> Store::Read(const SeriesPtr& series,
                                          const ReadOptions& options) const {
  std::unique_ptr<ReadView> view = OpenView({series});
  std::unique_ptr<SeriesReader> reader = view->Read(series, options);
  reader->Own(std::move(view));
  return reader;
}

absl::StatusOr<std::vector<std::optional<LatestSample>>> Store::LatestOf(
    const std::vector<SeriesPtr>& series) const {
  std::vector<std::optional<LatestSample>> latest(series.size());
  std::vector<size_t> unknown;
  for (size_t i = 0; i < series.size(); ++i) {
    latest[i] = engine_->head.Latest(series[i]);
    if (latest[i] && latest[i]->time_ns > engine_->head_knows_after_ns) continue;
    unknown.push_back(i);
  }
  std::vector<SeriesPtr> to_read;
  for (const size_t i : unknown) to_read.push_back(series[i]);
  const std::unique_ptr<StoredView> view = OpenStoredView(engine_.get(), to_read);
  for (const size_t i : unknown) {
    TACHO_ASSIGN_OR_RETURN(auto read, ReadLatest(engine_.get(), view.get(), series[i]));
    latest[i] = std::move(read);
  }
  return latest;
}

absl::StatusOr<std::optional<LatestSample>> Store::Latest(const SeriesPtr& series) const {
  auto latest = LatestOf({series});
  if (!latest.ok()) return latest.status();
  return std::move(latest->front());
}

void Store::VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const {
  engine_->head.VisitLatestRows(visit);
}

void Store::EndLatest(const std::vector<SeriesEnd>& ends) { engine_->head.EndLatest(ends); }

absl::Status Store::VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                                EventOrder order, absl::FunctionRef<bool(Event)> visit) const {
  const auto id = job.empty() ? std::optional<JobId>(kNoJob) : engine_->index.FindJob(job);
  if (!id) return absl::OkStatus();
  return VisitEventsOf(engine_.get(), rocksdb::ReadOptions(), *id, job, begin_ns, end_ns, order,
                       visit);
}

absl::StatusOr<std::vector<Event>> Store::Events(absl::string_view job, int64_t begin_ns,
                                                 int64_t end_ns) const {
  std::vector<Event> events;
  absl::Status status =
      VisitEvents(job, begin_ns, end_ns, EventOrder::kOldestFirst, [&](Event event) {
        events.push_back(std::move(event));
        return true;
      });
  if (!status.ok()) return status;
  return events;
}

}  // namespace tacho::storage
