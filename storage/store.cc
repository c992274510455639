// Opening, writing and closing. Every Append*() becomes one request to the committer, which decides
// on its own thread, in the order of the queue, what is stored: so that what is new, what is a
// repeat and which job exists is the same for all messages of one commit.
#include "storage/store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/keys.h"
#include "storage/engine.h"
#include "storage/index/events.h"
#include "storage/journal/rows_entry.h"
#include "storage/shard/segment.h"

namespace tacho::storage {
namespace {

constexpr uint64_t kMaxSharedQueue = kMaxSegmentPayload / 2;

void PutEvent(rocksdb::ColumnFamilyHandle* events, JobId job, const Event& event, uint64_t number,
              rocksdb::WriteBatch* write) {
  write->Put(events, EventKey(job, event.time_ns, number), EncodeEvent(event));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(StoreOptions options) {
  const absl::Time begun = MonotonicNow();
  DatabaseOptions files{.path = options.path,
                        .block_cache_bytes = options.block_cache_bytes,
                        .env = options.env,
                        .at_point = options.at_point,
                        .ship_log = options.shared.on,
                        .ballast_bytes = options.ballast_bytes,
                        .log = options.log};
  std::unique_ptr<Database> database;
  std::optional<SharedOpening> shared;
  if (options.shared.on) {
    TACHO_CHECK(options.history.bucket != nullptr);
    // A write is one record of a segment.
    options.queue_bytes = std::min(options.queue_bytes, kMaxSharedQueue);
    TACHO_ASSIGN_OR_RETURN(shared, OpenShared(options, std::move(files)));
    database = std::move(shared->database);
  } else {
    TACHO_ASSIGN_OR_RETURN(database, Database::Open(files));
  }
  auto engine =
      std::make_unique<Engine>(std::move(options), std::move(database), std::move(shared));
  engine->Log(absl::StrCat(
      "the database is open, its log read, in ",
      absl::FormatDuration(absl::Trunc(MonotonicNow() - begun, absl::Milliseconds(1)))));
  TACHO_RETURN_IF_ERROR(engine->Recover());
  return std::unique_ptr<Store>(new Store(std::move(engine)));
}

Store::Store(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

Store::~Store() { Close().IgnoreError(); }

absl::Status Store::Close() {
  if (!engine_->running) return absl::OkStatus();
  engine_->running = false;
  Reach(engine_->options.at_point, crash_point::kCloseBegin);
  if (engine_->history != nullptr) engine_->history->Stop();
  engine_->history_thread.Stop();
  engine_->merger.Stop();
  engine_->sealer.Stop();
  absl::Status sealed = engine_->Seal();
  Reach(engine_->options.at_point, crash_point::kCloseSealed);
  engine_->committer.Stop();
  if (engine_->is_shared()) engine_->StopShared();
  Reach(engine_->options.at_point, crash_point::kCloseStopped);
  if (!sealed.ok()) return sealed;
  if (engine_->database->disk->blocks_writes()) return engine_->database->disk->trouble();
  TACHO_RETURN_IF_ERROR(engine_->index.WriteKept());
  absl::Status settled = engine_->database->Settle();
  Reach(engine_->options.at_point, crash_point::kCloseSettled);
  return settled;
}

absl::StatusOr<Registration> Store::RegisterLayout(const LayoutDefinition& definition,
                                                   absl::FunctionRef<void()> between_slices) {
  Reach(engine_->options.at_point, crash_point::kRegisterBegin);
  TACHO_RETURN_IF_ERROR(engine_->committer.refusal());
  auto registration = engine_->index.Register(definition, between_slices);
  Reach(engine_->options.at_point, crash_point::kRegisterEnd);
  return registration;
}

void Store::SetLimits(std::shared_ptr<const LimitPolicy> limits) {
  engine_->index.SetLimits(std::move(limits));
}

std::shared_ptr<const LimitPolicy> Store::limits() const { return engine_->index.limits(); }

bool Store::HasRoomForJob(absl::string_view job) const { return engine_->index.HasRoomForJob(job); }

absl::StatusOr<LayoutPtr> Store::FindLayout(JobId job, LayoutId layout) const {
  return engine_->index.FindLayout(job, layout);
}

void Store::AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                       AppendDone done) {
  TACHO_CHECK(layout != nullptr && done != nullptr);
  if (const absl::Status room = engine_->CheckRoom(); !room.ok()) return done(room);
  const absl::Status brought = engine_->BringLateRows(layout->series.front()->job_id);
  if (!brought.ok()) return done(brought);
  engine_->committer.Enqueue({.origin = origin,
                              .layout = layout,
                              .entry = EncodeRowsEntry(*layout, rows),
                              .rows = rows.times.size(),
                              .done = std::move(done)});
}

void Store::AppendEvent(const Origin& origin, const Event& event, AppendDone done) {
  auto shared = std::make_shared<const Event>(event);
  engine_->committer.Enqueue(
      {.origin = origin,
       .stage = [this, shared](rocksdb::WriteBatch* write) -> absl::Status {
         TACHO_ASSIGN_OR_RETURN(const auto job, engine_->index.FindOrAddJob(shared->source.job));
         PutEvent(engine_->database->events, job, *shared, engine_->next_event++, write);
         return absl::OkStatus();
       },
       .event = shared,
       .done = std::move(done)});
}

void Store::AppendAttributes(const Origin& origin, const Attributes& attributes, AppendDone done) {
  engine_->committer.Enqueue(
      {.origin = origin,
       .stage = [this, attributes](rocksdb::WriteBatch* write) -> absl::Status {
         TACHO_ASSIGN_OR_RETURN(const auto job, engine_->index.FindOrAddJob(attributes.job));
         return engine_->jobs.Merge(job, attributes, write);
       },
       .done = std::move(done)});
}

void Store::AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows,
                      absl::string_view reason, AppendDone done) {
  // A gap belongs to no job: it is filed as an event of the job that has no name.
  const int64_t now_ns = absl::ToUnixNanos(engine_->options.now());
  std::function<absl::Status(rocksdb::WriteBatch*)> stage;
  if (lost.first == 0) {
    stage = [](rocksdb::WriteBatch*) { return absl::OkStatus(); };
  } else if (lost == SequenceRange{origin.sequence, origin.sequence}) {
    stage = [this, loss = LossRuns::Loss{.agent_id = origin.agent_id,
                                         .sequence = lost.first,
                                         .rows = rows,
                                         .reason = std::string(reason),
                                         .time_ns = now_ns}](rocksdb::WriteBatch* write) {
      const LossRuns::Record& record = engine_->loss_runs.Add(loss, engine_->next_event++);
      PutEvent(engine_->database->events, kNoJob, record.event, record.number, write);
      return absl::OkStatus();
    };
  } else {
    stage = [this, event = LossEvent(origin.agent_id, now_ns, reason, rows, lost.first, lost.last)](
                rocksdb::WriteBatch* write) {
      PutEvent(engine_->database->events, kNoJob, event, engine_->next_event++, write);
      return absl::OkStatus();
    };
  }
  engine_->committer.Enqueue(
      {.origin = origin, .stage = std::move(stage), .lost = lost, .done = std::move(done)});
}

std::string Store::ClaimAgent(absl::string_view agent_id, absl::string_view owner, bool take_over) {
  const int64_t day = DayOf(absl::ToUnixNanos(engine_->options.now()));
  AgentOwners& owners = engine_->owners;
  auto claimed =
      owners.Claim(agent_id, owner, take_over, static_cast<uint32_t>(std::max<int64_t>(0, day)));
  if (claimed.to_write == 0) return claimed.owner;
  // What is staged is what holds then: of two claims the later one must not be overwritten.
  const auto staged = std::make_shared<uint64_t>(0);
  engine_->committer.Enqueue(
      {.stage =
           [&owners, id = std::string(agent_id), staged](rocksdb::WriteBatch* write) {
             *staged = owners.Stage(id, write);
             return absl::OkStatus();
           },
       .upkeep = true,  // A full queue must not keep it from the disk.
       .done =
           [&owners, id = std::string(agent_id), staged](const absl::Status& status) {
             if (status.ok()) owners.Written(id, *staged);
           }});
  return claimed.owner;
}

SequenceSet Store::DurableSequences(absl::string_view agent_id, uint64_t generation) const {
  return engine_->committer.DurableSequences(agent_id, generation);
}

absl::Status Store::Seal() { return engine_->Seal(); }

absl::Status Store::MergeFrames() { return engine_->merger.MergeDue(); }

absl::Status Store::EnforceRetention() { return engine_->EnforceRetention(); }
absl::Status Store::RetentionRound() { return engine_->RetentionRound(); }

absl::Status Store::MoveHistory() {
  return engine_->history == nullptr ? absl::OkStatus() : engine_->history->Round();
}
HistoryState Store::History() const {
  if (engine_->history == nullptr) return {};
  return {.status = engine_->history->status(),
          .days = engine_->history->days()->picture()->days.size()};
}

SharedState Store::Shared() const {
  if (!engine_->is_shared()) return {};
  const Committer::Held held = engine_->committer.held();
  const HistoryKeeper::SharedFigures figures = engine_->history->shared();
  return {.on = true,
          .unshipped_bytes = held.bytes,
          .unshipped_for = held.since == absl::InfiniteFuture() ? absl::ZeroDuration()
                                                                : MonotonicNow() - held.since,
          .epoch = figures.epoch,
          .fenced = figures.fenced,
          .commits = figures.commits,
          .failed_commits = figures.failed_commits,
          .restore = engine_->opening->took};
}

uint64_t Store::unshipped_bytes() const { return engine_->committer.held_bytes(); }

uint64_t Store::queued_bytes() const { return engine_->committer.queued_bytes(); }

absl::Status Store::CommitShared() { return engine_->history->CommitState(false); }

absl::Status Store::UnloadIdleJobs() { return engine_->UnloadIdleJobs(); }

absl::Status Store::Checkpoint(const std::string& path) {
  return engine_->database->Checkpoint(path);
}

StoreStats Store::Stats() const {
  StoreStats stats;
  engine_->committer.FillStats(&stats);
  engine_->sealer.FillStats(&stats);
  engine_->merger.FillStats(&stats);
  stats.over_retention_bytes = engine_->over_retention_bytes;
  engine_->database->FillStats(&stats);
  engine_->columns.FillStats(&stats);
  const SeriesIndex::Counts counts = engine_->index.counts();
  stats.series = counts.series;
  stats.jobs = counts.jobs;
  stats.jobs_in_memory = counts.jobs_in_memory;
  stats.series_in_memory = counts.series_in_memory;
  stats.layouts = counts.layouts_in_memory;
  stats.text_bytes_in_memory = counts.text_bytes_in_memory;
  stats.next_series_id = counts.next_series_id;
  stats.open_rows = engine_->head.total().rows();
  stats.open_bytes = engine_->head.total().bytes();
  stats.open_raw_bytes = engine_->head.total().raw_bytes();
  stats.partitions_dropped = engine_->partitions_dropped;
  stats.missing_commits = engine_->missing.commits;
  stats.missing_messages = engine_->missing.messages;
  stats.missing_rows = engine_->missing.rows;
  return stats;
}

}  // namespace tacho::storage
