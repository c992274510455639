#include "storage/durable_store.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/index/event_record.h"
#include "storage/journal/rows_entry.h"

namespace tacho::storage {
namespace {

// How long a commit waits for sealing that does not get on.
constexpr absl::Duration kPatience = absl::Seconds(2);

// How often old days are looked for.
constexpr absl::Duration kRetentionRound = absl::Minutes(10);

}  // namespace

DurableStore::DurableStore(StoreOptions options, std::unique_ptr<Database> database)
    : options_(std::move(options)),
      database_(std::move(database)),
      columns_(options_.column_cache_bytes),
      journal_(database_->db.get(), database_->journal),
      index_(database_->db.get(), database_->index,
             {.limits = options_.limits == nullptr ? LimitPolicy::Default() : options_.limits,
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
                  .feed = &feed_,
                  .now = options_.now,
                  .before_commit = [this] { AwaitRoom(); },
                  .after_append = [this] { NoteAppended(); },
                  .disk = database_->disk.get(),
                  .on_disk = options_.on_disk,
                  .before_resuming = [this]() -> absl::Status {
                    TACHO_RETURN_IF_ERROR(index_.WriteKept());
                    return kept_.Write(rocksdb::WriteBatch(), "remove what was to be removed");
                  },
                  .at_point = options_.at_point},
                 options_.queue_bytes, options_.commit_spacing),
      merger_(database_.get(), &columns_, &index_, &head_,
              {.seal_rows = options_.seal_rows,
               .quiet = options_.merge_quiet,
               .now = options_.now,
               .log = options_.log,
               .at_point = options_.at_point}),
      sealer_(database_.get(), &columns_, &head_, &jobs_,
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
  TACHO_RETURN_IF_ERROR(index_.WriteKept());
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
  TACHO_ASSIGN_OR_RETURN(const auto job, index_.FindOrAddJob(event.source.job));
  write->Put(database_->events, EventKey(job, event.time_ns, next_event_++), EncodeEvent(event));
  return absl::OkStatus();
}

void DurableStore::AppendEvent(const Origin& origin, const Event& event, AppendDone done) {
  auto shared = std::make_shared<const Event>(event);
  committer_.Enqueue(
      {.origin = origin,
       .stage = [this, shared](rocksdb::WriteBatch* write) { return PutEvent(*shared, write); },
       .event = shared,
       .done = std::move(done)});
}

void DurableStore::AppendAttributes(const Origin& origin, const Attributes& attributes,
                                    AppendDone done) {
  committer_.Enqueue({.origin = origin,
                      .stage = [this, attributes](rocksdb::WriteBatch* write) -> absl::Status {
                        TACHO_ASSIGN_OR_RETURN(const auto job, index_.FindOrAddJob(attributes.job));
                        return jobs_.Merge(job, attributes, write);
                      },
                      .done = std::move(done)});
}

void DurableStore::AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows,
                             absl::string_view reason, AppendDone done) {
  // A gap belongs to no job: it is filed as an event of the job that has no name.
  const int64_t now_ns = absl::ToUnixNanos(options_.now());
  std::function<absl::Status(rocksdb::WriteBatch*)> stage;
  if (lost.first == 0) {
    stage = [](rocksdb::WriteBatch*) { return absl::OkStatus(); };
  } else if (lost == SequenceRange{origin.sequence, origin.sequence}) {
    stage = [this, loss = LossRuns::Loss{.agent_id = origin.agent_id,
                                         .sequence = lost.first,
                                         .rows = rows,
                                         .reason = std::string(reason),
                                         .time_ns = now_ns}](rocksdb::WriteBatch* write) {
      const LossRuns::Record& record = loss_runs_.Add(loss, next_event_++);
      write->Put(database_->events, EventKey(kNoJob, record.event.time_ns, record.number),
                 EncodeEvent(record.event));
      return absl::OkStatus();
    };
  } else {
    stage = [this, event = LossEvent(origin.agent_id, now_ns, reason, rows, lost.first, lost.last)](
                rocksdb::WriteBatch* write) {
      write->Put(database_->events, EventKey(kNoJob, event.time_ns, next_event_++),
                 EncodeEvent(event));
      return absl::OkStatus();
    };
  }
  committer_.Enqueue(
      {.origin = origin, .stage = std::move(stage), .lost = lost, .done = std::move(done)});
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

StoreStats DurableStore::Stats() const {
  StoreStats stats;
  committer_.FillStats(&stats);
  sealer_.FillStats(&stats);
  merger_.FillStats(&stats);
  stats.over_retention_bytes = over_retention_bytes_;
  database_->FillStats(&stats);
  columns_.FillStats(&stats);
  const SeriesIndex::Counts counts = index_.counts();
  stats.series = counts.series;
  stats.jobs = counts.jobs;
  stats.jobs_in_memory = counts.jobs_in_memory;
  stats.series_in_memory = counts.series_in_memory;
  stats.layouts = counts.layouts_in_memory;
  stats.text_bytes_in_memory = counts.text_bytes_in_memory;
  stats.next_series_id = counts.next_series_id;
  stats.open_rows = head_.total().rows();
  stats.open_bytes = head_.total().bytes();
  stats.open_raw_bytes = head_.total().raw_bytes();
  stats.partitions_dropped = partitions_dropped_;
  return stats;
}

}  // namespace tacho::storage
