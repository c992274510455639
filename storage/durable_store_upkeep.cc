#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/durable_store.h"

namespace tacho::storage {
namespace {

// How often idle jobs are looked for.
constexpr absl::Duration kIdleRound = absl::Minutes(1);
// An agent is remembered for as long as rows are kept, and so long at least: it may come back with
// a spool from before a holiday.
constexpr absl::Duration kRememberAgents = absl::Hours(24 * 30);

}  // namespace

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
  TACHO_RETURN_IF_ERROR(sealer_.SealAll());
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
  absl::StatusOr<size_t> dropped = size_t{0};
  if (!database_->partitions->Between(INT64_MIN, first_kept - 1).empty()) {
    ColumnWrite columns_change(&columns_, ColumnWrite::Kind::kReplaces);
    columns_change.AddEverySource();
    dropped = database_->partitions->DropBefore(first_kept);
    columns_.Clear();
  }
  if (!dropped.ok()) return dropped.status();
  partitions_dropped_ += *dropped;
  if (*dropped > 0) Log(absl::StrCat("retention: dropped ", *dropped, " days"));
  return ForgetBefore(first_kept * kDayNs);
}

absl::StatusOr<std::vector<JobId>> DurableStore::JobsWithEventsBefore(int64_t time_ns) const {
  std::vector<JobId> jobs;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db->NewIterator(rocksdb::ReadOptions(), database_->events));
  for (it->SeekToFirst(); it->Valid();) {
    ByteReader key(View(it->key()));
    const JobId id = key.Be32();
    if (key.BeTime() < time_ns) jobs.push_back(id);
    if (id == std::numeric_limits<JobId>::max()) break;
    it->Seek(EventKey(id + 1, INT64_MIN, 0));
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read events"));
  return jobs;
}

absl::Status DurableStore::ForgetBefore(int64_t time_ns) {
  return OnCommitter([this, time_ns](rocksdb::WriteBatch*) -> absl::Status {
    rocksdb::WriteBatch removals;
    // Removing a range of every job would be simpler, but who reads events passes all such ranges.
    TACHO_ASSIGN_OR_RETURN(const auto with_events, JobsWithEventsBefore(time_ns));
    for (const JobId id : with_events) {
      removals.DeleteRange(database_->events, EventKey(id, INT64_MIN, 0), EventKey(id, time_ns, 0));
    }
    for (const auto& [id, name, series] : index_.Jobs()) {
      const Extent extent = jobs_.Summarise(id).extent;
      // A job of which no row has come yet has only events or attributes: it stays.
      if (extent.first_time_ns > extent.last_time_ns) continue;
      if (extent.last_time_ns < time_ns) RemoveJob(id, &removals);
    }
    if (options_.retention > absl::ZeroDuration()) {
      const absl::Time forget =
          options_.now() - std::max<absl::Duration>(options_.retention, kRememberAgents);
      const int64_t before_day = DayOf(absl::ToUnixNanos(forget));
      if (before_day > 0) committer_.ForgetAgents(static_cast<uint32_t>(before_day), &removals);
    }
    // Else what was registered of a job just now would come back after its removal.
    if (absl::Status status = index_.WriteKept(); !status.ok()) {
      kept_.Keep(std::move(removals)).PermitUncheckedError();
      return status;
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

}  // namespace tacho::storage
