// Recovery goes from the bottom up: the catalogue, then the durable sequences, then the journal,
// each entry of which needs the layouts of the catalogue. Rows that are sealed already are passed
// over.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/engine.h"
#include "storage/journal/rows_entry.h"

namespace tacho::storage {
namespace {

// How often the recovery reports its progress.
constexpr absl::Duration kRecoveryReport = absl::Seconds(1);

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
  return journal.Recover([&](uint64_t position, absl::string_view bytes) {
    const auto entry = DecodeRowsEntry(bytes);
    if (!entry) return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
    if (++replayed % 1024 == 0 && MonotonicNow() - reported >= kRecoveryReport) {
      reported = MonotonicNow();
      Log(absl::StrCat("recovering: ", replayed, " of about ", total, " journal entries"));
    }
    Reach(options.at_point, crash_point::kOpenReplay);
    const auto done = sealed.find(entry->layout);
    if (done != sealed.end() && position <= done->second) return absl::OkStatus();
    if (const absl::Status used = index.Use(entry->job); absl::IsNotFound(used)) {
      return absl::OkStatus();  // The job has expired.
    }
    const auto found = index.FindLayout(entry->job, entry->layout);
    if (absl::IsNotFound(found.status())) {
      return absl::DataLossError(absl::StrCat("journal entry ", position, ": layout ",
                                              entry->layout, " is not in the index"));
    }
    if (!found.ok()) return found.status();
    TACHO_RETURN_IF_ERROR(jobs.Use(entry->job));
    const LayoutPtr& layout = *found;
    if (layout->series.size() != entry->columns || layout->has_steps != entry->has_steps) {
      return absl::DataLossError(
          absl::StrCat("journal entry ", position, " does not fit its layout"));
    }
    head.Append(layout, *entry, position, now);
    jobs.Include(*layout, *entry);
    // The journal may hold more than memory should: what is sealed here is trimmed later.
    return sealer.RelieveMemory();
  });
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
  for (const SeriesIndex::JobInfo& job : index.Jobs()) {
    if (jobs.Summarise(job.id).extent.last_time_ns < idle_before_ns) continue;
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
  // Only now: a crash before it finds the same again.
  mark.Restart(found);
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
  DiskWatch::KeepResumable(database->db.get());
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status written = database->db->Put(
      synced, database->events, EventKey(kNoJob, event.time_ns, next_event++), EncodeEvent(event));
  if (written.ok()) return;
  database->disk->Note(written);
  Log(absl::StrCat("the event data_lost could not be written: ", written.ToString()));
}

absl::Status Engine::Recover() {
  TACHO_CHECK(!running);
  const absl::Time begun = MonotonicNow();
  Reach(options.at_point, crash_point::kOpenDatabase);
  TACHO_RETURN_IF_ERROR(index.Load());
  TACHO_RETURN_IF_ERROR(jobs.Load());
  for (const SeriesIndex::JobInfo& job : index.Jobs()) HeadForgets(job.id);
  Reach(options.at_point, crash_point::kOpenIndex);
  TACHO_RETURN_IF_ERROR(LoadBusyJobs());
  TACHO_RETURN_IF_ERROR(committer.Recover());
  TACHO_RETURN_IF_ERROR(owners.Load());
  Reach(options.at_point, crash_point::kOpenSequences);
  TACHO_RETURN_IF_ERROR(ReplayJournal());
  Log(absl::StrCat(
      "recovered ", index.counts().series, " series and ", journal.end() - journal.begin(),
      " journal entries (", journal.bytes() >> 20, " MiB) in ",
      absl::FormatDuration(absl::Trunc(MonotonicNow() - begun, absl::Milliseconds(1)))));
  // Numbers only keep events of one time apart; nanoseconds since 1970 never meet an earlier one.
  Reach(options.at_point, crash_point::kOpenReady);
  next_event = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now()));
  CompareMark();
  running = true;
  NoteAppended();
  committer.Start();
  if (options.background) {
    sealer.Start();
    merger.Start();
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
