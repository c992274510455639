// Recovery goes from the bottom up: the catalogue, then the durable sequences, then the journal,
// each entry of which needs the layouts of the catalogue. Rows that are sealed already are passed
// over. Jobs with very many series, and their rows, are left for later: see BringLateRows().
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/engine.h"
#include "storage/journal/rows_entry.h"

namespace tacho::storage {
namespace {

// Between two looks at which days are due.
constexpr absl::Duration kHistoryPause = absl::Minutes(1);

// How often the recovery reports its progress.
constexpr absl::Duration kRecoveryReport = absl::Seconds(1);
// Bytes of late rows that are brought into the head in one go, while commits wait.
constexpr uint64_t kLateBytes = uint64_t{4} << 20;

}  // namespace

absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> Engine::ReadSealedPositions() const {
  absl::flat_hash_map<LayoutId, uint64_t> sealed;
  const std::unique_ptr<rocksdb::Iterator> it(
      database->db->NewIterator(rocksdb::ReadOptions(), database->state));
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
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read sealed positions"));
  return sealed;
}

absl::Status Engine::ReplayJournal() {
  TACHO_ASSIGN_OR_RETURN(const auto sealed, ReadSealedPositions());
  const absl::Time now = options.now();
  uint64_t total = 0;
  database->db->GetIntProperty(database->journal, rocksdb::DB::Properties::kEstimateNumKeys,
                               &total);
  absl::Time reported = MonotonicNow();
  uint64_t replayed = 0;
  const absl::Status read = journal.Recover([&](uint64_t position, absl::string_view bytes) {
    const auto entry = DecodeRowsEntry(bytes);
    if (!entry) return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
    if (++replayed % 1024 == 0 && MonotonicNow() - reported >= kRecoveryReport) {
      reported = MonotonicNow();
      Log(absl::StrCat("recovering: ", replayed, " of about ", total, " journal entries"));
    }
    Reach(options.at_point, crash_point::kOpenReplay);
    const auto done = sealed.find(entry->layout);
    if (done != sealed.end() && position <= done->second) return absl::OkStatus();
    TACHO_RETURN_IF_ERROR(ReplayEntry(position, *entry, now));
    // The journal may hold more than memory should: what is sealed here is trimmed later.
    return sealer.RelieveMemory();
  });
  TACHO_RETURN_IF_ERROR(read);
  // The newest may be sealed: a crash came between that and the trim. Nobody needs them again.
  head.NoteRead(journal.end() - 1);
  return absl::OkStatus();
}

absl::Status Engine::ReplayEntry(uint64_t position, const RowsEntry& entry, absl::Time now) {
  // Behind late rows there are only more of them, or they would come in the wrong order.
  if (late.Has(entry.job) || !LoadsAtOpen(entry.job)) {
    late.Add(entry.job, position);
    return absl::OkStatus();
  }
  const auto layout = LayoutOf(position, entry);
  if (absl::IsNotFound(layout.status())) return absl::OkStatus();  // The job has expired.
  if (!layout.ok()) return layout.status();
  head.Append(*layout, entry, position, now);
  jobs.Include(**layout, entry);
  return absl::OkStatus();
}

absl::StatusOr<LayoutPtr> Engine::LayoutOf(uint64_t position, const RowsEntry& entry) {
  TACHO_RETURN_IF_ERROR(index.Use(entry.job));
  auto found = index.FindLayout(entry.job, entry.layout);
  if (absl::IsNotFound(found.status())) {
    return absl::DataLossError(absl::StrCat("journal entry ", position, ": layout ", entry.layout,
                                            " is not in the index"));
  }
  if (!found.ok()) return found.status();
  TACHO_RETURN_IF_ERROR(jobs.Use(entry.job));
  if ((*found)->series.size() != entry.columns || (*found)->has_steps != entry.has_steps) {
    return absl::DataLossError(
        absl::StrCat("journal entry ", position, " does not fit its layout"));
  }
  return found;
}

bool Engine::LoadsAtOpen(JobId job) {
  if (index.InMemory(job)) return true;
  const uint64_t series = index.SeriesCount(job);
  if (series > series_left) return false;
  series_left -= series;
  return true;
}

absl::Status Engine::BringLateRows(JobId job) {
  while (late.Has(job)) {
    AwaitRoom();
    TACHO_RETURN_IF_ERROR(BringSomeLateRows(job));
  }
  return absl::OkStatus();
}

absl::Status Engine::BringSomeLateRows(JobId job) {
  // Here, not on the committer's thread: reading a large job takes a while.
  const absl::Status used = index.Use(job);
  if (absl::IsNotFound(used)) {
    late.Remove(job);
    return absl::OkStatus();
  }
  TACHO_RETURN_IF_ERROR(used);
  return OnCommitter([this, job](rocksdb::WriteBatch*) { return ApplyLateRows(job); });
}

absl::Status Engine::ApplyLateRows(JobId job) {
  const std::vector<uint64_t> positions = late.Of(job);
  if (positions.empty()) return absl::OkStatus();  // Another call has been faster.
  const absl::Time now = options.now();
  size_t applied = 0;
  uint64_t bytes = 0;
  const auto apply = [&](uint64_t position, absl::string_view encoded) -> absl::Status {
    if (position != positions[applied]) return absl::OkStatus();
    const auto entry = DecodeRowsEntry(encoded);
    TACHO_CHECK(entry.has_value());  // It was read at the opening.
    TACHO_ASSIGN_OR_RETURN(const auto layout, LayoutOf(position, *entry));
    head.AppendLate(layout, *entry, position, now);
    jobs.Include(*layout, *entry);
    bytes += encoded.size();
    const bool enough = ++applied == positions.size() || bytes >= kLateBytes;
    return enough ? absl::CancelledError() : absl::OkStatus();
  };
  const absl::Status read = journal.Read(positions.front(), apply);
  late.Remove(job, applied);
  NoteAppended();
  if (absl::IsCancelled(read)) return absl::OkStatus();
  return read.ok() ? absl::DataLossError("late rows are not in the journal any more") : read;
}

void Engine::HeadForgets(JobId job) {
  const int64_t last_ns = jobs.Summarise(job).extent.last_time_ns;
  int64_t known = head_knows_after_ns;
  while (last_ns > known && !head_knows_after_ns.compare_exchange_weak(known, last_ns)) {
  }
}

absl::Status Engine::LoadBusyJobs() {
  const int64_t idle_before_ns = options.job_idle <= absl::ZeroDuration()
                                     ? INT64_MIN
                                     : absl::ToUnixNanos(options.now() - options.job_idle);
  std::vector<SeriesIndex::JobInfo> all = index.Jobs();
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.series < b.series; });
  for (const SeriesIndex::JobInfo& job : all) {
    if (jobs.Summarise(job.id).extent.last_time_ns < idle_before_ns) continue;
    if (!LoadsAtOpen(job.id)) break;
    TACHO_RETURN_IF_ERROR(index.Use(job.id));
    TACHO_RETURN_IF_ERROR(jobs.Use(job.id));
  }
  return absl::OkStatus();
}

void Engine::CompareMark() {
  const CommitCount& found = committer.count();
  const auto marked = mark.Read();
  if (!marked.ok()) {
    Log(absl::StrCat(marked.status().message(),
                     "; whether the end of the write-ahead log is missing cannot be told"));
  } else if (*marked && (*marked)->commits > found.commits) {
    NoteMissing(found, **marked);
  }
  // Only now: a crash before it finds the same again. In memory the event waits for the disk, and
  // the mark for the first commit.
  if (!database->disk->blocks_writes()) mark.Restart(found);
}

void Engine::NoteMissing(const CommitCount& found, const CommitCount& marked) {
  missing = MissingOf(found, marked);
  const std::string what = DescribeMissing(options.path, found, marked);
  Log(what);
  if (missing.messages == 0) return;  // Only the store's own work, which is done again.
  Event event;
  event.time_ns = absl::ToUnixNanos(options.now());
  event.kind = "data_lost";
  event.message = what;
  event.fields = {{"commits", absl::StrCat(missing.commits)},
                  {"messages", absl::StrCat(missing.messages)},
                  {"rows", absl::StrCat(missing.rows)}};
  rocksdb::WriteBatch write;
  write.Put(database->events, EventKey(kNoJob, event.time_ns, next_event++), EncodeEvent(event));
  if (database->disk->blocks_writes()) {
    kept.Keep(std::move(write)).PermitUncheckedError();
    return;
  }
  database->disk->KeepResumable(database->db.get());
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status written = database->db->Write(synced, &write);
  if (written.ok()) return;
  database->disk->Note(written);
  Log(absl::StrCat("the event data_lost could not be written: ", written.ToString()));
}

absl::Status Engine::OpenHistory() {
  if (options.history.bucket == nullptr) {
    HistoryRecord record(database.get());
    TACHO_RETURN_IF_ERROR(record.Load());
    if (record.whole_from() == INT64_MIN) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("days before ", record.whole_from(),
                     " (counted from 1 January 1970) of this store are in a bucket: set bucket.url "
                     "to where they are"));
  }
  HistoryKeeper::Options keeper{
      .database = database.get(),
      .columns = &columns,
      .sealer = &sealer,
      .history = options.history,
      .local_bytes = options.retention_bytes,
      .now = [this] { return NewestOrNow(); },
      .monotonic = options.monotonic,
      .log = options.log,
      .at_point = options.at_point,
      .waits = options.background,
      // The head knows of no entry before its first; what the journal does not have is sealed.
      .sealed_up_to =
          [this] {
            return std::min(std::max(SealedUpTo(), journal_begin.load()), journal_end.load());
          },
      .env = options.env,
      .path = options.path,
      .shared = options.shared};
  if (opening.has_value()) {
    keeper.claimed = {.manifest = opening->claimed,
                      .sealed = opening->sealed,
                      .restored = opening->restored,
                      .journal_end = journal.end()};
  }
  TACHO_ASSIGN_OR_RETURN(history, HistoryKeeper::Open(std::move(keeper)));
  return absl::OkStatus();
}

absl::Status Engine::Recover() {
  TACHO_CHECK(!running);
  const absl::Time begun = MonotonicNow();
  Reach(options.at_point, crash_point::kOpenDatabase);
  TACHO_RETURN_IF_ERROR(index.Load());
  TACHO_RETURN_IF_ERROR(jobs.Load());
  for (const SeriesIndex::JobInfo& job : index.Jobs()) HeadForgets(job.id);
  Reach(options.at_point, crash_point::kOpenIndex);
  // Late rows come in with a commit, which a full disk refuses: then all must be there for queries.
  series_left = database->overlay == nullptr ? options.series_at_open : UINT64_MAX;
  TACHO_RETURN_IF_ERROR(LoadBusyJobs());
  TACHO_RETURN_IF_ERROR(committer.Recover());
  TACHO_RETURN_IF_ERROR(owners.Load());
  Reach(options.at_point, crash_point::kOpenSequences);
  TACHO_RETURN_IF_ERROR(ReplayJournal());
  Log(absl::StrCat(
      "recovered ", index.counts().series_in_memory, " of ", index.counts().series, " series and ",
      journal.end() - journal.begin(), " journal entries (", journal.bytes() >> 20, " MiB) in ",
      absl::FormatDuration(absl::Trunc(MonotonicNow() - begun, absl::Milliseconds(1)))));
  // Numbers only keep events of one time apart; nanoseconds since 1970 never meet an earlier one.
  TACHO_RETURN_IF_ERROR(OpenHistory());
  Reach(options.at_point, crash_point::kOpenReady);
  next_event = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now()));
  CompareMark();
  running = true;
  NoteAppended();
  committer.Start();
  if (is_shared()) TACHO_RETURN_IF_ERROR(StartShared());
  if (options.background) {
    if (history != nullptr) {
      history_thread.Start("history", RepeatingThread::Priority::kBackground, kHistoryPause,
                           [this] { HistoryRound(); });
    }
    sealer.Start();
    merger.Start();
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
