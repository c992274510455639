// Upkeep of a store: what makes room again on disk and in memory. Whatever changes what commits
// read runs on the committer's thread, between two of them, so that no row comes meanwhile.
#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/engine.h"

namespace tacho::storage {
namespace {

// How often idle jobs are looked for, and old days.
constexpr absl::Duration kIdleRound = absl::Minutes(1);
constexpr absl::Duration kRetentionRound = absl::Minutes(10);
// An agent is remembered as long as rows are kept, and at least this long: it may come back with a
// spool from before a holiday.
constexpr absl::Duration kRememberAgents = absl::Hours(24 * 30);

}  // namespace

void Engine::TrimJournal() {
  Reach(options.at_point, crash_point::kTrimBegin);
  const uint64_t sealed = SealedUpTo();
  committer.Enqueue(
      {.stage =
           [this, sealed](rocksdb::WriteBatch* write) {
             if (sealed > journal.begin()) journal.StageTrim(sealed, write);
             return absl::OkStatus();
           },
       .upkeep = true,
       .done = [this](const absl::Status&) { Reach(options.at_point, crash_point::kTrimDone); }});
}

absl::Status Engine::Seal() {
  TACHO_RETURN_IF_ERROR(sealer.SealAll());
  return OnCommitter([this](rocksdb::WriteBatch* write) {
    const uint64_t sealed = SealedUpTo();
    if (sealed > journal.begin()) journal.StageTrim(sealed, write);
    return absl::OkStatus();
  });
}

void Engine::AfterSealing() {
  TrimJournal();
  // A few a round, which this thread then seals.
  const std::vector<JobId> late_jobs = late.Jobs();
  if (!late_jobs.empty() && head.total().bytes() <= options.open_bytes &&
      !database->disk->blocks_writes()) {
    const absl::Status status = BringSomeLateRows(late_jobs.front());
    if (status.ok()) sealer.Wake();
    if (!status.ok()) Log(absl::StrCat("reading a large job failed: ", status.ToString()));
  }
  const absl::Time now = options.monotonic();
  if (now >= next_idle_round) {
    next_idle_round = now + kIdleRound;
    const absl::Status status = UnloadIdleJobs();
    if (!status.ok()) Log(absl::StrCat("unloading idle jobs failed: ", status.ToString()));
  }
  if (history != nullptr) return;  // Retention waits for the bucket: HistoryRound().
  const bool too_many_bytes =
      options.retention_bytes != 0 && database->TableBytes() > options.retention_bytes;
  if (!too_many_bytes) over_retention_bytes = 0;
  if (now < next_retention &&
      (!too_many_bytes || FirstDayWithinBytes(NewestOrNow()) == INT64_MIN)) {
    return;
  }
  next_retention = now + kRetentionRound;
  const absl::Status status = RetentionRound();
  if (!status.ok()) Log(absl::StrCat("retention failed: ", status.ToString()));
}

void Engine::RemoveJob(JobId job, rocksdb::WriteBatch* write) {
  index.RemoveJob(job, write);
  jobs.RemoveJob(job, write);
  head.RemoveJob(job);
  late.Remove(job);
  std::string prefix;
  PutBe32(job, &prefix);
  write->DeleteRange(database->events, prefix, PrefixEnd(prefix));
}

absl::Time Engine::NewestOrNow() const {
  const absl::Time now = options.now();
  const std::vector<int64_t> times = jobs.LastTimes();
  const auto newest = std::max_element(times.begin(), times.end());
  return newest == times.end() ? now : std::min(now, absl::FromUnixNanos(*newest));
}

int64_t Engine::FirstDayWithinAge(absl::Time now) const {
  if (options.retention <= absl::ZeroDuration()) return INT64_MIN;
  return DayOf(absl::ToUnixNanos(now - options.retention));
}

int64_t Engine::FirstDayWithinBytes(absl::Time now) {
  // With a bucket, bytes decide what leaves the disk, not what is forgotten.
  if (options.retention_bytes == 0 || history != nullptr) return INT64_MIN;
  uint64_t bytes = database->TableBytes();
  int64_t first_kept = INT64_MIN;
  const int64_t today = DayOf(absl::ToUnixNanos(now));
  for (const PartitionPtr& day : database->partitions->Between(INT64_MIN, today - 1)) {
    if (bytes <= options.retention_bytes) break;
    bytes -= std::min(bytes, day->TableBytes());
    first_kept = day->day() + 1;
  }
  const uint64_t over = bytes - std::min(bytes, options.retention_bytes);
  if (over > 0 && over_retention_bytes == 0) {
    Log(absl::StrCat("retention: the day being written now and what is no day hold ", over,
                     " bytes MORE than the retention allows; they are kept: raise the bound"));
  }
  over_retention_bytes = over;
  return first_kept;
}

std::vector<int64_t> Engine::DaysBefore(int64_t day) const {
  std::set<int64_t> days;
  for (const PartitionPtr& partition : database->partitions->Between(INT64_MIN, day - 1)) {
    days.insert(partition->day());
  }
  if (history != nullptr) {
    for (const BucketDayPtr& closed : history->days()->picture()->days) {
      if (closed->day() < day) days.insert(closed->day());
    }
  }
  for (const int64_t time_ns : jobs.LastTimes()) {
    if (DayOf(time_ns) < day) days.insert(DayOf(time_ns));
  }
  return {days.begin(), days.end()};
}

absl::Status Engine::EnforceRetention() {
  const absl::Time now = options.now();
  return DropBefore(std::max(FirstDayWithinAge(now), FirstDayWithinBytes(now)), now);
}

absl::Status Engine::RetentionRound() {
  // A clock that is ahead must not make everything old, nor the day being written an earlier one:
  // rows are as new as their agents' clocks say. One that is behind drops too little for a while.
  const absl::Time now = NewestOrNow();
  const int64_t within_bytes = FirstDayWithinBytes(now);
  const int64_t wanted = FirstDayWithinAge(now);
  const bool trusted = options.clock_trusted == nullptr || options.clock_trusted();
  if (wanted == INT64_MIN || !trusted) return DropBefore(within_bytes, std::nullopt);
  const absl::Time uptime = options.monotonic();
  const std::vector<int64_t> days = DaysBefore(wanted);
  const int64_t within_age = pace.FirstKept(days, wanted, uptime);
  const auto due =
      static_cast<size_t>(std::lower_bound(days.begin(), days.end(), within_age) - days.begin());
  TACHO_RETURN_IF_ERROR(DropBefore(std::max(within_age, within_bytes), now));
  pace.Dropped(due, uptime);
  if (due > 0 && due < days.size()) {
    Log(absl::StrCat("retention: ", days.size() - due,
                     " more days are too old; they go later (storage.retention_days_per_hour)"));
  }
  return absl::OkStatus();
}

absl::Status Engine::DropBefore(int64_t first_kept, std::optional<absl::Time> now) {
  if (first_kept == INT64_MIN) return absl::OkStatus();
  // The bucket first: what is left on the disk is then found again.
  if (history != nullptr) TACHO_RETURN_IF_ERROR(history->DropBefore(first_kept));
  absl::StatusOr<size_t> dropped = size_t{0};
  if (!database->partitions->Between(INT64_MIN, first_kept - 1).empty()) {
    ColumnWrite columns_change(&columns, ColumnWrite::Kind::kReplaces);
    columns_change.AddEverySource();
    dropped = database->partitions->DropBefore(first_kept);
    columns.Clear();
  }
  if (!dropped.ok()) return dropped.status();
  partitions_dropped += *dropped;
  if (*dropped > 0) Log(absl::StrCat("retention: dropped ", *dropped, " days"));
  return ForgetBefore(first_kept * kDayNs, now);
}

absl::StatusOr<std::vector<JobId>> Engine::JobsWithEventsBefore(int64_t time_ns) const {
  std::vector<JobId> found;
  const std::unique_ptr<rocksdb::Iterator> it(
      database->db->NewIterator(rocksdb::ReadOptions(), database->events));
  for (it->SeekToFirst(); it->Valid();) {
    ByteReader key(View(it->key()));
    const JobId id = key.Be32();
    if (key.BeTime() < time_ns) found.push_back(id);
    if (id == std::numeric_limits<JobId>::max()) break;
    it->Seek(EventKey(id + 1, INT64_MIN, 0));
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read events"));
  return found;
}

absl::Status Engine::ForgetBefore(int64_t time_ns, std::optional<absl::Time> now) {
  return OnCommitter([this, time_ns, now](rocksdb::WriteBatch*) -> absl::Status {
    rocksdb::WriteBatch removals;
    // Removing a range of every job would be simpler, but a reader of events has to pass all such
    // ranges.
    TACHO_ASSIGN_OR_RETURN(const auto with_events, JobsWithEventsBefore(time_ns));
    // What may fail comes before memory forgets anything.
    uint32_t before_day = 0;
    if (now.has_value() && options.retention > absl::ZeroDuration()) {
      const absl::Time forget = *now - std::max<absl::Duration>(options.retention, kRememberAgents);
      before_day = static_cast<uint32_t>(std::max<int64_t>(0, DayOf(absl::ToUnixNanos(forget))));
    }
    if (before_day > 0) TACHO_RETURN_IF_ERROR(owners.Forget(before_day, &removals));
    for (const JobId id : with_events) {
      removals.DeleteRange(database->events, EventKey(id, INT64_MIN, 0), EventKey(id, time_ns, 0));
    }
    for (const auto& [id, name, series] : index.Jobs()) {
      const Extent extent = jobs.Summarise(id).extent;
      // A job without rows so far has only events or attributes: it stays.
      if (extent.first_time_ns > extent.last_time_ns) continue;
      if (late.Has(id)) continue;  // Newer rows of it are not counted yet.
      if (extent.last_time_ns < time_ns) RemoveJob(id, &removals);
    }
    if (before_day > 0) committer.ForgetAgents(before_day, &removals);
    // Else what was registered of a job just now would come back after its removal.
    if (absl::Status status = index.WriteKept(); !status.ok()) {
      kept.Keep(std::move(removals)).PermitUncheckedError();
      return status;
    }
    return kept.Write(std::move(removals), "remove old jobs");
  });
}

void Engine::HistoryRound() {
  history->Round().IgnoreError();  // It has logged an error, and status() keeps it.
  const absl::Time now = options.monotonic();
  if (now < next_retention) return;
  next_retention = now + kRetentionRound;
  const absl::Status status = RetentionRound();
  if (!status.ok()) Log(absl::StrCat("retention failed: ", status.ToString()));
}

absl::Status Engine::UnloadIdleJobs() {
  if (options.job_idle <= absl::ZeroDuration()) return absl::OkStatus();
  const absl::Time unused_since = options.now() - options.job_idle;
  const std::vector<JobId> idle = index.UnusedSince(unused_since);
  // Between commits, so that no row of these jobs comes meanwhile.
  return OnCommitter([&](rocksdb::WriteBatch*) {
    const std::vector<JobId> sealed = head.RemoveSealed(idle);
    for (const JobId job : sealed) HeadForgets(job);
    index.Unload(sealed, unused_since);
    jobs.UnloadUnless([this](JobId job) { return index.InMemory(job); });
    return absl::OkStatus();
  });
}

}  // namespace tacho::storage
