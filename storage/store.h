// The collector's durable store: rows in, history out. Life of a batch:
//
//   Append*() -> committer thread: journal, one synced write for many batches -> head (memory)
//             -> done callback ... later: sealed into columns -> partition of its day -> retention
//
// docs/storage_format.md has the bytes; storage knows nothing of gRPC or protobuf.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/index/cardinality.h"
#include "storage/change_feed.h"
#include "storage/db/crash_point.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/index/matcher.h"
#include "storage/model/rows.h"
#include "storage/journal/sequence_set.h"
#include "storage/model/series.h"
#include "storage/index/series_limits.h"
#include "storage/model/series_reader.h"

namespace rocksdb {
class Env;
}

namespace tacho::storage {

// Whether the disk takes what is to be stored. Reading goes on in every state.
enum class DiskState {
  kWritable,
  kRefusing,  // It is full. Everything is refused with UNAVAILABLE; the store tries by itself, and
              // goes on once there is room.
  kFailed,  // Everything is refused until the store is opened again: a write or a sync has failed,
            // and only reading the disk anew tells what it holds.
};

struct StoreOptions {
  std::string path;                                 // Directory; created if missing.
  absl::Duration retention = absl::Hours(24 * 90);  // Older days are dropped. Zero keeps all.
  // Whole days are dropped, the oldest first, while the tables hold more than this; never the day
  // that is being written now. RocksDB's log, at most 256 MiB, comes on top. Zero: no bound.
  uint64_t retention_bytes = 0;
  absl::Duration seal_age = absl::Minutes(10);  // Rows wait at most this long in the journal.
  uint32_t seal_rows = 1024;                    // Rows of a layout that are sealed together.
  // A commit begins no sooner than this after the one before, so that under load many messages
  // share one sync; a message that comes after a pause is committed at once.
  absl::Duration commit_spacing = absl::Milliseconds(10);
  uint64_t queue_bytes = 64u << 20;  // Waiting for the disk; more is refused.
  // Memory of rows that are not sealed yet. Past it the longest are sealed early, or compressed, or
  // else sealed while they are short; past one and a half times as much commits wait, past twice as
  // much rows are refused, until that has helped.
  uint64_t open_bytes = 80u << 20;
  uint64_t open_raw_bytes = 16u << 20;  // Of these, what is never compressed.
  // Past it the layouts that hold the oldest entries are sealed, past twice as much rows are
  // refused: bounds disk and restart time.
  uint64_t journal_bytes = 256u << 20;
  uint64_t block_cache_bytes = 64u << 20;
  // What queries have decoded of columns, for the next query; see column_cache.h. Zero: nothing.
  uint64_t column_cache_bytes = 64u << 20;
  // What RegisterLayout takes in; nullptr is LimitPolicy::Default(). SetLimits() changes it.
  std::shared_ptr<const LimitPolicy> limits;
  // A job of which nothing has been recorded or asked for so long, and whose rows are all sealed,
  // leaves memory but for its summary; its latest rows with it. It comes back, with the same ids,
  // when it is needed. Zero: jobs stay until they expire.
  absl::Duration job_idle = absl::Hours(1);
  std::function<absl::Time()> now = absl::Now;  // Decides ages; never changes a stored time.
  rocksdb::Env* env = nullptr;                  // Not owned. nullptr is the real file system.
  std::function<void(absl::string_view)> log;   // One line of progress or trouble; may be null.
  // Called on the committer's thread when this changes; see DiskState. May be null.
  std::function<void(DiskState, const absl::Status& why)> on_disk;
  AtPoint at_point;  // Tests end the process there; see crash_point.h.
  // What is left of a source's small frames is merged when it has sent nothing for this long.
  absl::Duration merge_quiet = absl::Hours(1);
  bool background = true;  // Seal and drop by age on a thread; tests switch it off and call Seal().
};

// Who sent a message, for exactly-once storing. sequence 0 means "not counted": always stored.
struct Origin {
  std::string agent_id;
  uint64_t generation = 0;
  uint64_t sequence = 0;
};

// How an Append*() ended. Called once, on the committer thread: return fast, take no lock that is
// held while calling the store.
//   OK           durable: on disk, synced, readable. Also for a repeat, which is not stored again.
//   UNAVAILABLE  the disk refused; nothing is stored. Retry later, see DiskState. After a restart
//                the message may turn out to be durable all the same, whole.
using AppendDone = std::function<void(const absl::Status&)>;

// Figures for the collector's own metrics.
struct StoreStats {
  uint64_t rows_appended = 0;     // Since Open().
  uint64_t samples_appended = 0;  // Values, stale markers left out.
  uint64_t batches_appended = 0;
  uint64_t batches_repeated = 0;  // Dropped as already durable.
  uint64_t commits = 0;           // Synced writes.
  double commit_seconds = 0;      // Spent in them.
  uint64_t commit_latency_us_buckets[24] =
      {};  // [i]: commits of less than 2^i µs and no less than 2^(i-1).
  uint64_t queued_bytes = 0;
  uint64_t series = 0;
  uint64_t jobs = 0;
  // Of these, in memory: see StoreOptions::job_idle.
  uint64_t series_in_memory = 0;
  uint64_t jobs_in_memory = 0;
  uint64_t layouts = 0;               // In memory.
  uint64_t text_bytes_in_memory = 0;  // Names and labels of the jobs in memory.
  SeriesId next_series_id = 1;        // Every series that there is has a lower one.
  uint64_t open_rows = 0;             // In the head.
  uint64_t open_bytes = 0;
  uint64_t open_raw_bytes = 0;  // Of these, not compressed.
  uint64_t journal_entries = 0;
  uint64_t journal_bytes = 0;
  uint64_t rows_sealed = 0;
  uint64_t columns_sealed = 0;
  uint64_t column_bytes_sealed = 0;  // Keys and values handed to RocksDB.
  uint64_t partitions = 0;
  uint64_t partitions_dropped = 0;
  uint64_t over_retention_bytes = 0;  // What the day written now holds beyond retention_bytes.
  uint64_t merges = 0;
  uint64_t frames_merged = 0;  // Small frames that became part of another.
  uint64_t merge_bytes = 0;    // Keys and values of merged frames, handed to RocksDB.
  // Written to disk since Open(): to the log (journal, columns, everything else), by writing
  // memtables out, by compacting.
  uint64_t log_bytes_written = 0;
  uint64_t flush_bytes_written = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t disk_bytes = 0;  // Live SST files and WAL of all column families.
  uint64_t memtable_bytes = 0;
  uint64_t block_cache_bytes = 0;
  uint64_t column_cache_bytes = 0;   // Decoded columns and what is known of others.
  uint64_t column_cache_hits = 0;    // Look-ups that found what they were for,
  uint64_t column_cache_misses = 0;  // and those that did not.
  uint64_t pending_compaction_bytes = 0;
};

// What a layout has shown last since Open() (or in the journal that was found then). Its series
// need not share a row: one that is recorded every hundredth step has its newest value here all the
// same.
struct LatestRow {
  LayoutPtr layout;
  // Of the newest row.
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  absl::Time received;  // By StoreOptions::now, when the row was appended or recovered.
  // One a column: its newest value; the stale marker if no row has had one.
  std::span<const double> values;

  // The row that a column's newest value is from.
  struct Stamp {
    int64_t time_ns = 0;
    absl::Time received;
  };
  // Empty if all values are from the newest row; else for each column an index into `stamps`.
  std::span<const Stamp> stamps;
  std::span<const uint32_t> stamp_of;

  int64_t Time(size_t column) const {
    return stamp_of.empty() ? time_ns : stamps[stamp_of[column]].time_ns;
  }
  absl::Time Received(size_t column) const {
    return stamp_of.empty() ? received : stamps[stamp_of[column]].received;
  }
};

struct LatestSample {
  SeriesPtr series;
  int64_t time_ns = 0;
  int64_t step = kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

// Thread-safe but for Open(), Close() and destruction.
class Store {
 public:
  // Opens or creates the store and rebuilds its head from the journal.
  //   FAILED_PRECONDITION  the directory has another format version; the text says which.
  //   DATA_LOSS            stored bytes are damaged; the text names them.
  //   UNAVAILABLE          the disk refused, or another process has the directory open.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);
  virtual ~Store() = default;

  // Commits what is queued, seals the head, closes the database. Appending afterwards fails with
  // UNAVAILABLE. Called by the destructor if not before, with its status lost.
  virtual absl::Status Close() = 0;

  // --- Writing -------------------------------------------------------------------------------

  // What became of a layout.
  struct Registration {
    // Its series are first those of `columns`, then one for each of `folded`; nullptr if every
    // column was refused.
    LayoutPtr layout;
    std::vector<uint32_t> columns;  // Of the definition, those stored as they are, ascending.
    // Columns of the definition whose values are to be added up, row by row.
    std::vector<std::vector<uint32_t>> folded;
    std::vector<Breach> breaches;               // What was refused, folded or observed.
    std::shared_ptr<const LimitPolicy> limits;  // That were applied.
  };
  // Finds or makes a layout. What it registers is durable no later than the first row appended to
  // it.
  //   INVALID_ARGUMENT  no series, or the same series twice.
  //   UNAVAILABLE       the disk refused.
  virtual absl::StatusOr<Registration> RegisterLayout(const LayoutDefinition& definition) = 0;

  // Holds for what is registered from now on.
  virtual void SetLimits(std::shared_ptr<const LimitPolicy> limits) = 0;
  virtual std::shared_ptr<const LimitPolicy> limits() const = 0;
  // Whether the job exists or may be made: to be asked before an event or attributes are appended
  // for a job, which makes it. Calls at the same time may make a few jobs too many.
  virtual bool HasRoomForJob(absl::string_view job) const = 0;

  // A layout that was registered before, for those who do not hold on to it: what is held keeps its
  // job in memory.
  //   NOT_FOUND  it has expired with its job.
  //   others     as FindSeries().
  virtual absl::StatusOr<LayoutPtr> FindLayout(JobId job, LayoutId layout) const = 0;

  // Queue a message for the next commit. `rows` must fit the layout, which the caller has checked.
  // The arguments are copied before the call returns. If the queue is full, or rows come faster
  // than they are sealed, the call refuses at once, with RESOURCE_EXHAUSTED through `done` on the
  // calling thread: retry later.
  virtual void AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                          AppendDone done) = 0;
  virtual void AppendEvent(const Origin& origin, const Event& event, AppendDone done) = 0;
  virtual void AppendAttributes(const Origin& origin, const Attributes& attributes,
                                AppendDone done) = 0;
  // Marks sequences that will never come as durable, and records the loss as an event "data_lost"
  // of the job without a name. `lost` may be the origin's own sequence: its message was given up.
  // With 0 as its first nothing is lost: nothing of the message is to be stored, its sequence
  // becomes durable, and nothing is recorded.
  virtual void AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows,
                         absl::string_view reason, AppendDone done) = 0;

  // Sequences of this agent and generation that are durable now.
  virtual SequenceSet DurableSequences(absl::string_view agent_id, uint64_t generation) const = 0;

  // --- Reading -------------------------------------------------------------------------------

  virtual std::vector<JobSummary> Jobs() const = 0;  // By name.
  virtual std::optional<JobDetail> FindJob(absl::string_view job) const = 0;
  // Of FindJob() the attempts only, which is cheaper for a job of many tasks. No such job: none.
  virtual absl::StatusOr<std::vector<AttemptInfo>> Attempts(absl::string_view job) const = 0;
  // What FindJob() leaves out, at the cost of a look at every series of the job.
  //   NOT_FOUND  there is no such job.
  virtual absl::StatusOr<JobEntities> Entities(absl::string_view job) const = 0;
  // By name; as Entities().
  virtual absl::StatusOr<std::vector<MetricUse>> Metrics(absl::string_view job) const = 0;
  // For lists of many jobs: the job stays where it is, in memory or not, and this counts as no use
  // of it. Hosts of a job that is not in memory cost reading all of its tasks.
  //   NOT_FOUND  there is no such job.
  virtual absl::StatusOr<JobOutline> Outline(absl::string_view job, bool hosts) const = 0;

  // Series that match, by (metric name, task, host, labels). No such job: an empty list.
  //   RESOURCE_EXHAUSTED  more than `limit` match.
  virtual absl::StatusOr<std::vector<SeriesPtr>> FindSeries(const Selector& selector,
                                                            size_t limit) const = 0;

  // A view of some series, see series_reader.h; it sees everything that was durable when it was
  // made. It must not outlive the store. Holds some hundred bytes a series and their open rows.
  virtual std::unique_ptr<ReadView> OpenView(std::vector<SeriesPtr> series) const = 0;
  // A view of a job, see series_reader.h; of none that exists, an empty one. Must not outlive the
  // store. Commits wait while it is made: for a copy of the job's open rows that are not
  // compressed, StoreOptions::open_raw_bytes at the very most.
  virtual std::unique_ptr<JobView> OpenJobView(absl::string_view job) const = 0;
  // Tells what is committed to a job from now on, see change_feed.h. If `view` is not null it
  // becomes a view that shows all that was committed before, and nothing else.
  virtual std::unique_ptr<Subscription> Subscribe(SubscribeOptions options,
                                                  std::unique_ptr<JobView>* view) const = 0;
  // A reader of one series, with a view of its own.
  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) const;

  // The newest sample (highest time) of each of the series; nullopt if it has none. Cheaper for
  // many than one by one, if they come as from FindSeries().
  virtual absl::StatusOr<std::vector<std::optional<LatestSample>>> LatestOf(
      const std::vector<SeriesPtr>& series) const = 0;
  // Of one.
  absl::StatusOr<std::optional<LatestSample>> Latest(const SeriesPtr& series) const;

  // Calls `visit` for every layout that has shown a row. What it is given is only valid
  // during the call. Appending waits meanwhile for the layout visited: be quick.
  virtual void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const = 0;

  enum class EventOrder { kOldestFirst, kNewestFirst };
  // Calls `visit` for the events of a job in [begin_ns, end_ns), where INT64_MAX is "no end", one
  // after the other, until it returns false. No such job: not at all.
  virtual absl::Status VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                                   EventOrder order,
                                   absl::FunctionRef<bool(Event)> visit) const = 0;
  // All of them, ascending in time.
  absl::StatusOr<std::vector<Event>> Events(absl::string_view job, int64_t begin_ns,
                                            int64_t end_ns) const;

  // What is used of the limits: the `top` largest jobs, metrics and labels of all jobs in memory,
  // or of one, which is brought there.
  //   NOT_FOUND  there is no such job.
  virtual absl::StatusOr<CardinalityReport> Cardinality(absl::string_view job,
                                                        size_t top) const = 0;

  // --- Upkeep --------------------------------------------------------------------------------

  // Seals every open row now and trims the journal. Returns when it is on disk.
  virtual absl::Status Seal() = 0;
  // Merges the small frames that are due, without waiting for the background to do it; only with
  // StoreOptions::background off.
  virtual absl::Status MergeFrames() = 0;
  // Drops what is older than the retention, and what exceeds its bytes.
  virtual absl::Status EnforceRetention() = 0;
  // Takes jobs out of memory that are idle: see StoreOptions::job_idle.
  virtual absl::Status UnloadIdleJobs() = 0;

  // Copies the whole store, as it is at one moment after the call began, into `path`: a directory
  // that does not exist and whose parent does. Everything acknowledged before the call is in it,
  // and it is synced; opened with Open() it is a store of its own. Tables are hard links where the
  // file system allows, so that the cost is that of the log (at most about 256 MiB). Appending and
  // reading go on. After an error something may be left in `path` and in `path`.tmp.
  //   RESOURCE_EXHAUSTED  no room at `path`.
  //   UNAVAILABLE         a disk refuses, or the store does not take writes: see DiskState.
  virtual absl::Status Checkpoint(const std::string& path) = 0;

  virtual StoreStats Stats() const = 0;
};

}  // namespace tacho::storage
