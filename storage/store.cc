#include "storage/store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/bytes.h"
#include "storage/committer.h"
#include "storage/database.h"
#include "storage/event_record.h"
#include "storage/frame_merger.h"
#include "storage/head.h"
#include "storage/job_table.h"
#include "storage/journal.h"
#include "storage/kept_writes.h"
#include "storage/keys.h"
#include "storage/rocksdb_status.h"
#include "storage/rows_entry.h"
#include "storage/sealer.h"
#include "storage/series_index.h"
#include "storage/stored_view.h"

namespace tacho::storage {
namespace {

// Under which events are kept that belong to no job.
constexpr JobId kNoJob = 0;

// How long a commit waits for sealing that does not get on.
constexpr absl::Duration kPatience = absl::Seconds(2);

// How often progress of the recovery is told.
constexpr absl::Duration kRecoveryReport = absl::Seconds(1);

// How often old days are looked for.
constexpr absl::Duration kRetentionRound = absl::Minutes(10);
// How often idle jobs are.
constexpr absl::Duration kIdleRound = absl::Minutes(1);

class DurableStore final : public Store {
 public:
  DurableStore(StoreOptions options, std::unique_ptr<Database> database);
  ~DurableStore() override { Close().IgnoreError(); }

  // Rebuilds what is in memory, then starts the threads.
  absl::Status Recover();
  absl::Status Close() override;

  absl::StatusOr<LayoutPtr> FindLayout(JobId job, LayoutId layout) const override {
    return index_.FindLayout(job, layout);
  }
  absl::StatusOr<Registration> RegisterLayout(const LayoutDefinition& definition) override {
    Reach(options_.at_point, crash_point::kRegisterBegin);
    if (absl::Status refusal = committer_.refusal(); !refusal.ok()) return refusal;
    auto registration = index_.Register(definition);
    Reach(options_.at_point, crash_point::kRegisterEnd);
    return registration;
  }
  void AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                  AppendDone done) override;
  void AppendEvent(const Origin& origin, const Event& event, AppendDone done) override;
  void AppendAttributes(const Origin& origin, const Attributes& attributes,
                        AppendDone done) override;
  void AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows, absl::string_view reason,
                 AppendDone done) override;
  SequenceSet DurableSequences(absl::string_view agent_id, uint64_t generation) const override {
    return committer_.DurableSequences(agent_id, generation);
  }

  std::vector<JobSummary> Jobs() const override;
  std::optional<JobDetail> FindJob(absl::string_view job) const override;
  absl::StatusOr<std::vector<SeriesPtr>> FindSeries(const Selector& selector,
                                                    size_t limit) const override {
    return index_.Find(selector, limit);
  }
  std::unique_ptr<ReadView> OpenView(std::vector<SeriesPtr> series) const override;
  absl::StatusOr<std::vector<std::optional<LatestSample>>> LatestOf(
      const std::vector<SeriesPtr>& series) const override;
  void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const override {
    head_.VisitLatestRows(visit);
  }
  absl::StatusOr<std::vector<Event>> Events(absl::string_view job, int64_t begin_ns,
                                            int64_t end_ns) const override;

  absl::Status Seal() override;
  absl::Status MergeFrames() override { return merger_.MergeDue(); }
  absl::Status EnforceRetention() override;
  absl::Status UnloadIdleJobs() override;
  StoreStats Stats() const override;

 private:
  absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> ReadSealedPositions() const;
  absl::Status ReplayJournal();
  absl::Status PutEvent(const Event& event, rocksdb::WriteBatch* write);
  void TrimJournal();
  // Rows of a commit are in the head: whether the sealer has work. On the committer's thread.
  void NoteAppended();
  // Journal positions before this must be sealed for the journal to keep its bound; 0: it does.
  uint64_t PositionsToSeal() const;
  absl::StatusOr<std::optional<LatestSample>> ReadLatest(ReadView* view,
                                                         const SeriesPtr& series) const;
  // Waits while open rows take too much memory, for as long as sealing gets on with it.
  void AwaitRoom();
  // RESOURCE_EXHAUSTED if sealing is so far behind that no rows may come.
  absl::Status CheckRoom() const;
  // What has been stored of a job so far is not in the head.
  void HeadForgets(JobId job);
  // Runs `work` on the committer's thread, between commits, and waits for it.
  absl::Status OnCommitter(std::function<absl::Status(rocksdb::WriteBatch*)> work);
  void RemoveJob(JobId job, rocksdb::WriteBatch* write);
  // The first day that retention_bytes lets stay; INT64_MIN: all do.
  int64_t FirstDayWithinBytes();
  // Forgets the events before a time, and the jobs whose rows all are.
  absl::Status ForgetBefore(int64_t time_ns);
  void UnloadIdleJobsWhenDue();
  absl::Status LoadBusyJobs();
  void Log(absl::string_view line) const {
    if (options_.log != nullptr) options_.log(line);
  }

  const StoreOptions options_;
  const std::unique_ptr<Database> database_;
  Journal journal_;  // Committer's thread only, but for recovery.
  // Reading may bring a job into memory, which changes nothing that a reader can tell.
  mutable SeriesIndex index_;
  Head head_;
  mutable JobTable jobs_;
  KeptWrites kept_;  // Removals, which memory has forgotten already.
  Committer committer_;
  FrameMerger merger_;
  Sealer sealer_;
  std::atomic<uint64_t> next_event_ = 1;
  std::atomic<uint64_t> partitions_dropped_ = 0;
  // Rows up to this time may have come that the head knows nothing of.
  std::atomic<int64_t> head_knows_after_ns_ = INT64_MIN;
  std::atomic<uint64_t> over_retention_bytes_ = 0;
  // Of the journal, for others than the committer's thread.
  std::atomic<uint64_t> journal_begin_ = 0;
  std::atomic<uint64_t> journal_end_ = 0;
  std::atomic<uint64_t> journal_bytes_ = 0;
  absl::Time next_retention_;   // Sealer's thread only.
  absl::Time next_idle_round_;  // Sealer's thread only.
  bool running_ = false;
};

DurableStore::DurableStore(StoreOptions options, std::unique_ptr<Database> database)
    : options_(std::move(options)),
      database_(std::move(database)),
      journal_(database_->db.get(), database_->journal),
      index_(database_->db.get(), database_->index,
             {.max_series = options_.max_series,
              .max_series_per_job = options_.max_series_per_job,
              .now = options_.now}),
      jobs_(database_->db.get(), database_->state),
      kept_(database_->db.get()),
      committer_({.db = database_->db.get(),
                  .state = database_->state,
                  .events = database_->events,
                  .journal = &journal_,
                  .index = &index_,
                  .head = &head_,
                  .jobs = &jobs_,
                  .now = options_.now,
                  .before_commit = [this] { AwaitRoom(); },
                  .after_append = [this] { NoteAppended(); },
                  .disk = database_->disk.get(),
                  .on_disk = options_.on_disk,
                  .before_resuming = [this]() -> absl::Status {
                    if (absl::Status kept = index_.WriteKept(); !kept.ok()) return kept;
                    return kept_.Write(rocksdb::WriteBatch(), "remove what was to be removed");
                  },
                  .at_point = options_.at_point},
                 options_.queue_bytes, options_.commit_spacing),
      merger_(database_.get(), &index_, &head_,
              {.seal_rows = options_.seal_rows,
               .quiet = options_.merge_quiet,
               .now = options_.now,
               .log = options_.log}),
      sealer_(database_.get(), &head_, &jobs_,
              {.seal_rows = options_.seal_rows,
               .seal_age = options_.seal_age,
               .open_bytes = options_.open_bytes,
               .open_raw_bytes = options_.open_raw_bytes,
               .positions_before = [this] { return PositionsToSeal(); },
               .now = options_.now,
               .log = options_.log,
               .after_round =
                   [this] {
                     TrimJournal();
                     UnloadIdleJobsWhenDue();
                     if (options_.now() < next_retention_ && FirstDayWithinBytes() == INT64_MIN) {
                       return;
                     }
                     next_retention_ = options_.now() + kRetentionRound;
                     const absl::Status status = EnforceRetention();
                     if (!status.ok()) Log(absl::StrCat("retention failed: ", status.ToString()));
                   },
               .on_sealed = [this](const std::vector<FrameRef>& frames) { merger_.Add(frames); },
               .at_point = options_.at_point}) {}

absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> DurableStore::ReadSealedPositions() const {
  absl::flat_hash_map<LayoutId, uint64_t> sealed;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db->NewIterator(rocksdb::ReadOptions(), database_->state));
  for (it->Seek("P"); it->Valid() && it->key().starts_with("P"); it->Next()) {
    ByteReader key(View(it->key()));
    ByteReader value(View(it->value()));
    key.Byte();
    key.Be32();
    sealed[key.Be64()] = value.Varint();
    if (!key.AtEnd() || !value.AtEnd()) {
      return absl::DataLossError("the sealed position under " + it->key().ToString(true) +
                                 " is damaged");
    }
  }
  if (absl::Status status = FromRocksDb(it->status(), "read sealed positions"); !status.ok()) {
    return status;
  }
  return sealed;
}

absl::Status DurableStore::ReplayJournal() {
  const auto sealed = ReadSealedPositions();
  if (!sealed.ok()) return sealed.status();
  const absl::Time now = options_.now();
  uint64_t total = 0;
  database_->db->GetIntProperty(database_->journal, rocksdb::DB::Properties::kEstimateNumKeys,
                                &total);
  absl::Time told = absl::Now();
  uint64_t replayed = 0;
  return journal_.Recover([&](uint64_t position, absl::string_view bytes) {
    const auto entry = DecodeRowsEntry(bytes);
    if (!entry) return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
    if (++replayed % 1024 == 0 && absl::Now() - told >= kRecoveryReport) {
      told = absl::Now();
      Log(absl::StrCat("recovering: ", replayed, " of about ", total, " journal entries"));
    }
    Reach(options_.at_point, crash_point::kOpenReplay);
    const auto done = sealed->find(entry->layout);
    if (done != sealed->end() && position <= done->second) return absl::OkStatus();
    if (const absl::Status used = index_.Use(entry->job); absl::IsNotFound(used)) {
      return absl::OkStatus();  // The job has expired.
    }
    const auto found = index_.FindLayout(entry->job, entry->layout);
    if (absl::IsNotFound(found.status())) {
      return absl::DataLossError(absl::StrCat("journal entry ", position, ": layout ",
                                              entry->layout, " is not in the index"));
    }
    if (!found.ok()) return found.status();
    if (absl::Status used = jobs_.Use(entry->job); !used.ok()) return used;
    const LayoutPtr& layout = *found;
    if (layout->series.size() != entry->columns || layout->has_steps != entry->has_steps) {
      return absl::DataLossError(
          absl::StrCat("journal entry ", position, " does not fit its layout"));
    }
    head_.Append(layout, *entry, position, now);
    jobs_.Include(*layout, *entry);
    // The journal may hold more than memory should: what is sealed here is trimmed later.
    return sealer_.RelieveMemory();
  });
}

void DurableStore::HeadForgets(JobId job) {
  const int64_t last_ns = jobs_.Summarise(job).extent.last_time_ns;
  int64_t known = head_knows_after_ns_;
  while (last_ns > known && !head_knows_after_ns_.compare_exchange_weak(known, last_ns)) {
  }
}

absl::Status DurableStore::LoadBusyJobs() {
  const int64_t idle_before_ns = options_.job_idle <= absl::ZeroDuration()
                                     ? INT64_MIN
                                     : absl::ToUnixNanos(options_.now() - options_.job_idle);
  for (const SeriesIndex::JobInfo& job : index_.Jobs()) {
    if (jobs_.Summarise(job.id).extent.last_time_ns < idle_before_ns) continue;
    if (absl::Status status = index_.Use(job.id); !status.ok()) return status;
    if (absl::Status status = jobs_.Use(job.id); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DurableStore::Recover() {
  const auto at = [this](absl::string_view point) -> std::function<absl::Status()> {
    return [this, point] {
      Reach(options_.at_point, point);
      return absl::OkStatus();
    };
  };
  Reach(options_.at_point, crash_point::kOpenDatabase);
  const absl::Time begun = absl::Now();
  const auto steps = {
      std::function<absl::Status()>([this] { return index_.Load(); }),
      std::function<absl::Status()>([this] { return jobs_.Load(); }),
      std::function<absl::Status()>([this] {
        for (const SeriesIndex::JobInfo& job : index_.Jobs()) HeadForgets(job.id);
        return absl::OkStatus();
      }),
      at(crash_point::kOpenIndex),
      std::function<absl::Status()>([this] { return LoadBusyJobs(); }),
      std::function<absl::Status()>([this] { return committer_.Recover(); }),
      at(crash_point::kOpenSequences),
      std::function<absl::Status()>([this] { return ReplayJournal(); }),
  };
  for (const auto& step : steps) {
    if (absl::Status status = step(); !status.ok()) return status;
  }
  Log(absl::StrCat("recovered ", index_.counts().series, " series and ",
                   journal_.end() - journal_.begin(), " journal entries (", journal_.bytes() >> 20,
                   " MiB) in ",
                   absl::FormatDuration(absl::Trunc(absl::Now() - begun, absl::Milliseconds(1)))));
  // Numbers only keep events of one time apart; nanoseconds since 1970 never meet an earlier one.
  Reach(options_.at_point, crash_point::kOpenReady);
  next_event_ = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now()));
  running_ = true;
  NoteAppended();
  committer_.Start();
  if (options_.background) {
    sealer_.Start();
    merger_.Start();
  }
  return absl::OkStatus();
}

absl::Status DurableStore::Close() {
  if (!running_) return absl::OkStatus();
  running_ = false;
  Reach(options_.at_point, crash_point::kCloseBegin);
  merger_.Stop();
  sealer_.Stop();
  absl::Status sealed = Seal();
  Reach(options_.at_point, crash_point::kCloseSealed);
  committer_.Stop();
  Reach(options_.at_point, crash_point::kCloseStopped);
  if (!sealed.ok()) return sealed;
  if (database_->disk->blocks_writes()) return database_->disk->trouble();
  absl::Status settled = database_->Settle();
  Reach(options_.at_point, crash_point::kCloseSettled);
  return settled;
}

void DurableStore::NoteAppended() {
  journal_begin_ = journal_.begin();
  journal_end_ = journal_.end();
  journal_bytes_ = journal_.bytes();
  if (head_.longest() >= options_.seal_rows || head_.total().bytes() > options_.open_bytes ||
      journal_bytes_ > options_.journal_bytes) {
    sealer_.Wake();
  }
}

uint64_t DurableStore::PositionsToSeal() const {
  const uint64_t bytes = journal_bytes_;
  if (bytes <= options_.journal_bytes) return 0;
  // Entries are taken to be of one size; if they are not, the next round goes on.
  const double kept =
      0.75 * static_cast<double>(options_.journal_bytes) / static_cast<double>(bytes);
  const uint64_t begin = journal_begin_;
  return begin + 1 + static_cast<uint64_t>((1 - kept) * static_cast<double>(journal_end_ - begin));
}

void DurableStore::AwaitRoom() {
  if (!options_.background) return;
  uint64_t least = UINT64_MAX;
  absl::Time last_progress = absl::Now();
  for (;;) {
    const uint64_t open = head_.total().bytes();
    if (open <= options_.open_bytes / 2 * 3) return;
    if (open < least) {
      least = open;
      last_progress = absl::Now();
    } else if (absl::Now() - last_progress > kPatience) {
      return;  // Then CheckRoom() refuses what comes.
    }
    sealer_.Wake();
    absl::SleepFor(absl::Milliseconds(2));
  }
}

absl::Status DurableStore::CheckRoom() const {
  if (head_.total().bytes() <= 2 * options_.open_bytes &&
      journal_bytes_ <= 2 * options_.journal_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("sealing is behind: ", head_.total().bytes(),
                                                   " bytes of open rows, ", journal_bytes_.load(),
                                                   " bytes of journal"));
}

void DurableStore::AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                              AppendDone done) {
  if (const absl::Status room = CheckRoom(); !room.ok()) return done(room);
  committer_.Enqueue({.origin = origin,
                      .layout = layout,
                      .entry = EncodeRowsEntry(*layout, rows),
                      .done = std::move(done)});
}

absl::Status DurableStore::PutEvent(const Event& event, rocksdb::WriteBatch* write) {
  const auto job = index_.FindOrAddJob(event.source.job);
  if (!job.ok()) return job.status();
  write->Put(database_->events, EventKey(*job, event.time_ns, next_event_++), EncodeEvent(event));
  return absl::OkStatus();
}

void DurableStore::AppendEvent(const Origin& origin, const Event& event, AppendDone done) {
  committer_.Enqueue(
      {.origin = origin,
       .stage = [this, event](rocksdb::WriteBatch* write) { return PutEvent(event, write); },
       .done = std::move(done)});
}

void DurableStore::AppendAttributes(const Origin& origin, const Attributes& attributes,
                                    AppendDone done) {
  committer_.Enqueue({.origin = origin,
                      .stage = [this, attributes](rocksdb::WriteBatch* write) -> absl::Status {
                        const auto job = index_.FindOrAddJob(attributes.job);
                        if (!job.ok()) return job.status();
                        return jobs_.Merge(*job, attributes, write);
                      },
                      .done = std::move(done)});
}

void DurableStore::AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows,
                             absl::string_view reason, AppendDone done) {
  // A gap belongs to no job: it is filed as an event of the job that has no name.
  Event event;
  event.source.host = origin.agent_id;
  event.time_ns = absl::ToUnixNanos(options_.now());
  event.kind = "data_lost";
  event.message = std::string(reason);
  event.fields = {{"rows", absl::StrCat(rows)},
                  {"first_sequence", absl::StrCat(lost.first)},
                  {"last_sequence", absl::StrCat(lost.last)}};
  const bool only_itself = lost == SequenceRange{origin.sequence, origin.sequence};
  committer_.Enqueue({.origin = origin,
                      .stage =
                          [this, event, only_itself](rocksdb::WriteBatch* write) {
                            if (only_itself) return absl::OkStatus();
                            write->Put(database_->events,
                                       EventKey(kNoJob, event.time_ns, next_event_++),
                                       EncodeEvent(event));
                            return absl::OkStatus();
                          },
                      .lost = lost,
                      .done = std::move(done)});
}

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

std::unique_ptr<ReadView> DurableStore::OpenView(std::vector<SeriesPtr> series) const {
  StoredView::OpenRows open_rows;
  for (const SeriesPtr& one : series) {
    auto pieces = head_.Capture(*one);
    if (!pieces.empty()) open_rows[one->id] = std::move(pieces);
  }
  return std::make_unique<StoredView>(database_->db.get(),
                                      database_->partitions->Between(INT64_MIN, INT64_MAX),
                                      std::move(open_rows));
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
  const std::unique_ptr<ReadView> view = OpenView(std::move(to_read));
  for (const size_t i : unknown) {
    auto read = ReadLatest(view.get(), series[i]);
    if (!read.ok()) return read.status();
    latest[i] = *std::move(read);
  }
  return latest;
}

absl::StatusOr<std::optional<LatestSample>> DurableStore::ReadLatest(
    ReadView* view, const SeriesPtr& series) const {
  const auto last = jobs_.LastTime(*series);
  if (!last.ok()) return last.status();
  const std::optional<int64_t>& newest = *last;
  if (!newest) return std::optional<LatestSample>();
  // Most series have a value near their task's newest row; those that do not are read further back.
  for (int64_t reach = int64_t{1'000'000'000} * 60;; reach *= 60) {
    const bool everything = reach > 30 * kDayNs || *newest < INT64_MIN + reach;
    ReadOptions options;
    options.begin_ns = everything ? INT64_MIN : *newest - reach;
    const auto reader = view->Read(series, options);
    std::optional<LatestSample> latest;
    SampleBlock block;
    for (;;) {
      const auto more = reader->Next(&block);
      if (!more.ok()) return more.status();
      if (!*more) break;
      latest = LatestSample{series, block.times.back(), block.steps.back(), block.attempts.back(),
                            block.values.back()};
    }
    if (latest || everything) return latest;
  }
}

absl::StatusOr<std::vector<Event>> DurableStore::Events(absl::string_view job, int64_t begin_ns,
                                                        int64_t end_ns) const {
  std::vector<Event> out;
  const auto id = job.empty() ? std::optional<JobId>(kNoJob) : index_.FindJob(job);
  if (!id) return out;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db->NewIterator(rocksdb::ReadOptions(), database_->events));
  for (it->Seek(EventKey(*id, begin_ns, 0)); it->Valid(); it->Next()) {
    ByteReader key(View(it->key()));
    if (key.Be32() != *id) break;
    const int64_t time_ns = key.BeTime();
    if (time_ns >= end_ns && end_ns != INT64_MAX) break;
    auto event = DecodeEvent(View(it->value()));
    if (!event) return absl::DataLossError("the event " + it->key().ToString(true) + " is damaged");
    event->source.job = std::string(job);
    event->time_ns = time_ns;
    out.push_back(*std::move(event));
  }
  if (absl::Status status = FromRocksDb(it->status(), "read events"); !status.ok()) return status;
  return out;
}

absl::Status DurableStore::OnCommitter(std::function<absl::Status(rocksdb::WriteBatch*)> work) {
  absl::Mutex mutex;
  bool finished = false;
  absl::Status result;
  committer_.Enqueue(
      {.stage = std::move(work), .upkeep = true, .done = [&](const absl::Status& status) {
         absl::MutexLock lock(&mutex);
         result = status;
         finished = true;
       }});
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&finished));
  return result;
}

void DurableStore::TrimJournal() {
  Reach(options_.at_point, crash_point::kTrimBegin);
  const uint64_t sealed = head_.SealedUpTo();
  committer_.Enqueue(
      {.stage =
           [this, sealed](rocksdb::WriteBatch* write) {
             if (sealed > journal_.begin()) journal_.StageTrim(sealed, write);
             return absl::OkStatus();
           },
       .upkeep = true,
       .done = [this](const absl::Status&) { Reach(options_.at_point, crash_point::kTrimDone); }});
}

absl::Status DurableStore::Seal() {
  if (absl::Status status = sealer_.SealAll(); !status.ok()) return status;
  return OnCommitter([this](rocksdb::WriteBatch* write) {
    const uint64_t sealed = head_.SealedUpTo();
    if (sealed > journal_.begin()) journal_.StageTrim(sealed, write);
    return absl::OkStatus();
  });
}

void DurableStore::RemoveJob(JobId job, rocksdb::WriteBatch* write) {
  index_.RemoveJob(job, write);
  jobs_.RemoveJob(job, write);
  head_.RemoveJob(job);
  std::string prefix;
  PutBe32(job, &prefix);
  write->DeleteRange(database_->events, prefix, PrefixEnd(prefix));
}

int64_t DurableStore::FirstDayWithinBytes() {
  if (options_.retention_bytes == 0) return INT64_MIN;
  uint64_t bytes = database_->TableBytes();
  int64_t first_kept = INT64_MIN;
  const int64_t today = DayOf(absl::ToUnixNanos(options_.now()));
  for (const PartitionPtr& day : database_->partitions->Between(INT64_MIN, today - 1)) {
    if (bytes <= options_.retention_bytes) break;
    bytes -= std::min(bytes, day->TableBytes());
    first_kept = day->day() + 1;
  }
  const uint64_t over = bytes - std::min(bytes, options_.retention_bytes);
  if (over > 0 && over_retention_bytes_ == 0) {
    Log(absl::StrCat("retention: the day being written now and what is no day hold ", over,
                     " bytes MORE than the retention allows; they are kept: raise the bound"));
  }
  over_retention_bytes_ = over;
  return first_kept;
}

absl::Status DurableStore::EnforceRetention() {
  int64_t first_kept = FirstDayWithinBytes();
  if (options_.retention > absl::ZeroDuration()) {
    first_kept =
        std::max(first_kept, DayOf(absl::ToUnixNanos(options_.now() - options_.retention)));
  }
  if (first_kept == INT64_MIN) return absl::OkStatus();
  const auto dropped = database_->partitions->DropBefore(first_kept);
  if (!dropped.ok()) return dropped.status();
  partitions_dropped_ += *dropped;
  if (*dropped > 0) Log(absl::StrCat("retention: dropped ", *dropped, " days"));
  return ForgetBefore(first_kept * kDayNs);
}

absl::Status DurableStore::ForgetBefore(int64_t time_ns) {
  return OnCommitter([this, time_ns](rocksdb::WriteBatch*) {
    rocksdb::WriteBatch removals;
    auto jobs = index_.Jobs();
    jobs.push_back({.id = kNoJob});
    for (const auto& [id, name, series] : jobs) {
      removals.DeleteRange(database_->events, EventKey(id, INT64_MIN, 0), EventKey(id, time_ns, 0));
      if (id == kNoJob) continue;
      const Extent extent = jobs_.Summarise(id).extent;
      // A job of which no row has come yet has only events or attributes: it stays.
      if (extent.first_time_ns > extent.last_time_ns) continue;
      if (extent.last_time_ns < time_ns) RemoveJob(id, &removals);
    }
    return kept_.Write(std::move(removals), "remove old jobs");
  });
}

void DurableStore::UnloadIdleJobsWhenDue() {
  if (options_.now() < next_idle_round_) return;
  next_idle_round_ = options_.now() + kIdleRound;
  const absl::Status status = UnloadIdleJobs();
  if (!status.ok()) Log(absl::StrCat("unloading idle jobs failed: ", status.ToString()));
}

absl::Status DurableStore::UnloadIdleJobs() {
  if (options_.job_idle <= absl::ZeroDuration()) return absl::OkStatus();
  const absl::Time unused_since = options_.now() - options_.job_idle;
  const std::vector<JobId> idle = index_.UnusedSince(unused_since);
  // Between commits, so that no row of these jobs comes meanwhile.
  return OnCommitter([&](rocksdb::WriteBatch*) {
    const std::vector<JobId> sealed = head_.RemoveSealed(idle);
    for (const JobId job : sealed) HeadForgets(job);
    index_.Unload(sealed, unused_since);
    jobs_.UnloadUnless([this](JobId job) { return index_.InMemory(job); });
    return absl::OkStatus();
  });
}

StoreStats DurableStore::Stats() const {
  StoreStats stats;
  committer_.FillStats(&stats);
  sealer_.FillStats(&stats);
  merger_.FillStats(&stats);
  stats.over_retention_bytes = over_retention_bytes_;
  database_->FillStats(&stats);
  const SeriesIndex::Counts counts = index_.counts();
  stats.series = counts.series;
  stats.jobs = counts.jobs;
  stats.jobs_in_memory = counts.jobs_in_memory;
  stats.series_in_memory = counts.series_in_memory;
  stats.layouts = counts.layouts_in_memory;
  stats.open_rows = head_.total().rows();
  stats.open_bytes = head_.total().bytes();
  stats.open_raw_bytes = head_.total().raw_bytes();
  stats.partitions_dropped = partitions_dropped_;
  return stats;
}

}  // namespace

absl::StatusOr<std::optional<LatestSample>> Store::Latest(const SeriesPtr& series) const {
  auto latest = LatestOf({series});
  if (!latest.ok()) return latest.status();
  return std::move(latest->front());
}

std::unique_ptr<SeriesReader> Store::Read(const SeriesPtr& series,
                                          const ReadOptions& options) const {
  // Owns the view that it reads through.
  class Reader final : public SeriesReader {
   public:
    Reader(std::unique_ptr<ReadView> view, const SeriesPtr& series, const ReadOptions& options)
        : view_(std::move(view)), reader_(view_->Read(series, options)) {}

    absl::StatusOr<bool> Next(SampleBlock* block) override { return reader_->Next(block); }
    absl::StatusOr<bool> NextSummary(absl::FunctionRef<bool(const SampleSummary&)> fits,
                                     SampleSummary* summary) override {
      return reader_->NextSummary(fits, summary);
    }

   private:
    const std::unique_ptr<ReadView> view_;
    const std::unique_ptr<SeriesReader> reader_;
  };
  return std::make_unique<Reader>(OpenView({series}), series, options);
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  const absl::Time begun = absl::Now();
  auto database = Database::Open(options);
  if (!database.ok()) return database.status();
  if (options.log != nullptr) {
    options.log(absl::StrCat(
        "the database is open, its log read, in ",
        absl::FormatDuration(absl::Trunc(absl::Now() - begun, absl::Milliseconds(1)))));
  }
  auto store = std::make_unique<DurableStore>(std::move(options), *std::move(database));
  if (absl::Status status = store->Recover(); !status.ok()) return status;
  return store;
}

}  // namespace tacho::storage
