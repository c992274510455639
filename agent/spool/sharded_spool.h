// One spool for each shard of a cluster: what is of a job goes into the spool of the job's shard,
// or of the host's part of a split job, from which a stream of its own leads to the member that
// keeps it. So a member that is away holds up nothing but its own jobs, and no sequence depends on
// another member.
//
// A spool is opened when the first message of its shard comes. `max_bytes` is for all of them
// together: past it the fullest one drops its oldest messages. So one that waits for a member has
// the room that the others leave.
//
// A checkpoint lies in the spool of the rows that it came with. When it comes with rows of another
// shard it moves there, and both spools are synced: so it is never ahead of rows that a crash of
// the machine takes. That is rare, as what a source notes is of one job.
//
// Rows of a host's own job are needed by each member that judges a job on that host. So the spools
// of shards whose jobs have lately run here get a copy of them (Layout.copy). A copy is worth less
// than a row: it comes with no checkpoint, and if it cannot be written, it is left out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/spool/spool.h"
#include "agent/spool/spool_stats.h"
#include "proto/base/clock.h"
#include "proto/base/job_shard.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

struct ShardedSpoolOptions {
  SpoolOptions spool;  // Its path is the directory in which the spools lie.
  JobDivision division = {.shards = 2, .split_jobs = {}};
  // The job whose spool on this host is always open, and has the checkpoints that came with no
  // rows. Two agents with one directory are found by it.
  std::string home_job;
  std::string home_host;
  // The jobs of rows about the host itself: their rows are copied.
  std::set<std::string> host_jobs;
  std::function<absl::Time()> monotonic = MonotonicNow;
};

// Calls of RowSink come one at a time, as SinkGate lets them through; the others are thread-safe.
class ShardedSpool : public RowSink {
 public:
  // So long after the last row of its jobs a shard still gets copies: a job that hangs records
  // nothing, and that is when its host matters most.
  static constexpr absl::Duration kCopiedFor = absl::Hours(2);

  // Opens the home spool, and all that are there. What waits in spools of another number of
  // members, or of none, is moved first (spool_move.h), which takes seconds for a gigabyte.
  //   as Spool::Open() and MoveSpool().
  static absl::StatusOr<std::unique_ptr<ShardedSpool>> Open(ShardedSpoolOptions options);

  // RowSink. Each call may fail as Spool::Open(), too, if it is the first one of a shard.
  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times_unix_ns,
                          std::span<const int64_t> steps, std::span<const double> values,
                          const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AppendAttributes(const v1::Attributes& attributes,
                                const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string ReadCheckpoint(absl::string_view key) const override ABSL_LOCKS_EXCLUDED(mutex_);

  // The open spools by shard. They live as long as this.
  std::map<uint32_t, Spool*> spools() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint32_t home() const { return home_; }
  // Called for each spool that is opened from now on, before anything is in it, on the thread that
  // appends. Null: nobody is.
  void SetOpened(std::function<void(uint32_t shard, Spool* spool)> opened) {
    opened_ = std::move(opened);
  }

  // The sums over all spools.
  SpoolStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Place {
    Spool* spool = nullptr;
    uint32_t layout = 0;
    uint32_t shard = 0;
    // The layout of the copies, if the job is the host's own; else null.
    std::shared_ptr<const v1::Layout> copied = nullptr;
    std::map<uint32_t, uint32_t> copies = {};  // By shard: the copies' layout there.
  };
  struct Rows {
    std::span<const int64_t> times_unix_ns;
    std::span<const int64_t> steps;
    std::span<const double> values;
  };

  explicit ShardedSpool(ShardedSpoolOptions options);

  absl::Status Load();
  uint32_t ShardOf(const v1::Source& source) const;
  absl::StatusOr<Spool*> OpenShard(uint32_t shard) ABSL_LOCKS_EXCLUDED(mutex_);
  // After it `to` alone may have the checkpoint.
  absl::Status BringCheckpoint(absl::string_view key, Spool* to);
  // Gives the rows of a host's own job to the shards of the jobs that run here.
  void Copy(const Rows& rows, Place* from);
  uint64_t Bytes() const;
  void KeepWithinBound();

  const ShardedSpoolOptions options_;
  const uint32_t home_;
  std::function<void(uint32_t, Spool*)> opened_;
  std::vector<Place> layouts_;  // By handle less 1.
  std::map<std::pair<Spool*, uint32_t>, uint32_t> handles_;
  std::map<uint32_t, absl::Time> used_;  // By shard: when a job of it last had rows.

  mutable absl::Mutex mutex_;  // Not held while a spool works.
  std::map<uint32_t, std::unique_ptr<Spool>> spools_ ABSL_GUARDED_BY(mutex_);
};

// The spool of an agent without a cluster. What waits in spools of shards, because there was one,
// is moved into it first.
//   as Spool::Open() and MoveSpool().
absl::StatusOr<std::unique_ptr<Spool>> OpenUndivided(const SpoolOptions& options);

}  // namespace tacho::agent
