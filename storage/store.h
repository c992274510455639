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
#include "storage/change_feed.h"
#include "storage/index/cardinality.h"
#include "storage/index/matcher.h"
#include "storage/index/registration.h"
#include "storage/journal/sequence_set.h"
#include "storage/model/event.h"
#include "storage/model/job.h"
#include "storage/model/series.h"
#include "storage/model/series_reader.h"
#include "storage/model/stats.h"
#include "storage/options.h"

namespace tacho::storage {

// The sender of a message, so that it is stored exactly once. A message with sequence 0 is not
// counted: it is always stored.
struct Origin {
  std::string agent_id;
  uint64_t generation = 0;
  uint64_t sequence = 0;
};

// How an Append*() ended. Called once, on the committer thread: return fast, take no lock that is
// held while calling the store. With SharedOptions::on also on other threads.
//   OK           durable: on disk, synced, readable. Also for a repeat, which is not stored again.
//                With SharedOptions::on: in the bucket, too. It was readable before.
//   UNAVAILABLE  the disk refused; nothing is stored. Retry later, see DiskState. After a restart
//                the message may turn out to be durable all the same, whole.
using AppendDone = std::function<void(const absl::Status&)>;

struct Engine;  // engine.h.

// The history in the bucket. Without a bucket it is OK and empty.
struct HistoryState {
  absl::Status status;  // How the last round of MoveHistory() ended.
  uint64_t days = 0;    // Whose columns are there.
};

// Acknowledgements that wait for the bucket. Without them it is all zero.
struct SharedState {
  bool on = false;
  uint64_t unshipped_bytes = 0;  // Of messages that are stored here, and wait for the bucket.
  absl::Duration unshipped_for;  // So long the oldest of them has waited.
  uint64_t epoch = 0;
  bool fenced = false;
  uint64_t commits = 0;  // Since the store was opened.
  uint64_t failed_commits = 0;
  absl::Duration restore;  // What the restore took when the store was opened; zero: there was none.
};

// Thread-safe but for Open(), Close() and destruction.
class Store {
 public:
  // Opens or creates the store and rebuilds its head from the journal.
  //   FAILED_PRECONDITION  the directory has another format version; the text says which.
  //   DATA_LOSS            stored bytes are damaged; the text names them.
  //   UNAVAILABLE          the disk refused, or another process has the directory open.
  static absl::StatusOr<std::unique_ptr<Store>> Open(StoreOptions options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // Commits what is queued, seals the head, closes the database. Appending afterwards fails with
  // UNAVAILABLE. Called by the destructor if not before, with its status lost.
  absl::Status Close();

  // --- Writing -------------------------------------------------------------------------------

  // Finds or makes a layout. What it registers is durable no later than the first row appended to
  // it. `between_slices` is called now and then while many series are added, with no lock held, so
  // that the caller can let others have the processor.
  //   INVALID_ARGUMENT  no series, or the same series twice.
  //   UNAVAILABLE       the disk refused.
  absl::StatusOr<Registration> RegisterLayout(
      const LayoutDefinition& definition, absl::FunctionRef<void()> between_slices = [] {});

  // The limits for layouts that are registered from now on.
  void SetLimits(std::shared_ptr<const LimitPolicy> limits);
  std::shared_ptr<const LimitPolicy> limits() const;
  // Whether the job exists or may be made. Ask before appending an event or attributes, which makes
  // the job. Concurrent calls may make a few jobs too many.
  bool HasRoomForJob(absl::string_view job) const;

  // A layout that was registered before, for callers that do not keep it: a LayoutPtr keeps its job
  // in memory.
  //   NOT_FOUND  it has expired with its job.
  //   others     as FindSeries().
  absl::StatusOr<LayoutPtr> FindLayout(JobId job, LayoutId layout) const;

  // Queue a message for the next commit. `rows` must fit the layout: a misfit ends the process. The
  // arguments are copied before the call returns. If the queue is full, or rows come faster than
  // they are sealed, the call refuses at once, with RESOURCE_EXHAUSTED through `done` on the
  // calling thread: retry later.
  void AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                  AppendDone done);
  void AppendEvent(const Origin& origin, const Event& event, AppendDone done);
  void AppendAttributes(const Origin& origin, const Attributes& attributes, AppendDone done);
  // Marks sequences that will never come as durable, and records the loss as an event "data_lost"
  // of the job without a name; one event a minute counts the messages that an agent gives up one by
  // one. `lost` may be the origin's own sequence: its message was given up. If lost.first is 0,
  // nothing is lost or recorded: only the origin's sequence becomes durable.
  void AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows, absl::string_view reason,
                 AppendDone done);

  // Gives the agent's id to `owner` if nobody has it yet, or if `take_over`; returns who has it.
  // That is durable no later than what is appended afterwards, and is forgotten with the agent's
  // sequences.
  std::string ClaimAgent(absl::string_view agent_id, absl::string_view owner, bool take_over);
  // Sequences of this agent and generation that are durable now; with SharedOptions::on, those that
  // are in the bucket.
  SequenceSet DurableSequences(absl::string_view agent_id, uint64_t generation) const;

  // --- Reading -------------------------------------------------------------------------------

  std::vector<JobSummary> Jobs() const;  // By name.
  std::optional<JobDetail> FindJob(absl::string_view job) const;
  // Only the attempts of FindJob(), which is cheaper for a job of many tasks. Empty if there is no
  // such job.
  absl::StatusOr<std::vector<AttemptInfo>> Attempts(absl::string_view job) const;
  // The tasks and chips of a job, which FindJob() leaves out. Looks at every series of the job.
  //   NOT_FOUND  there is no such job.
  absl::StatusOr<JobEntities> Entities(absl::string_view job) const;
  // By name; as Entities().
  absl::StatusOr<std::vector<MetricUse>> Metrics(absl::string_view job) const;
  // For lists of many jobs: does not bring the job into memory, and does not count as a use of it.
  // The hosts of a job that is not in memory cost reading all of its tasks.
  //   NOT_FOUND  there is no such job.
  absl::StatusOr<JobOutline> Outline(absl::string_view job, bool hosts) const;

  // Series that match, by (metric name, task, host, labels). No such job: an empty list.
  //   RESOURCE_EXHAUSTED  more than `limit` match.
  absl::StatusOr<std::vector<SeriesPtr>> FindSeries(const Selector& selector, size_t limit) const;

  // A view of some series, see series_reader.h. It sees everything that was durable when it was
  // made, and must not outlive the store. It holds a few hundred bytes a series, and their open
  // rows.
  std::unique_ptr<ReadView> OpenView(std::vector<SeriesPtr> series) const;
  // A view of a job, see series_reader.h; an empty one if there is no such job. Must not outlive
  // the store. Commits wait while it copies the job's open rows that are not compressed, at most
  // StoreOptions::open_raw_bytes.
  std::unique_ptr<JobView> OpenJobView(absl::string_view job) const;
  // Delivers what is committed to a job from now on, see change_feed.h. If `view` is not null it
  // becomes a view of exactly what was committed before.
  std::unique_ptr<Subscription> Subscribe(SubscribeOptions options,
                                          std::unique_ptr<JobView>* view) const;
  // A reader of one series, with a view of its own.
  std::unique_ptr<SeriesReader> Read(const SeriesPtr& series, const ReadOptions& options) const;

  // The newest sample (highest time) of each of the series; nullopt if it has none. Cheaper for
  // many than one by one, if they come as from FindSeries().
  absl::StatusOr<std::vector<std::optional<LatestSample>>> LatestOf(
      const std::vector<SeriesPtr>& series) const;
  // The same for one series.
  absl::StatusOr<std::optional<LatestSample>> Latest(const SeriesPtr& series) const;

  // Calls `visit` for every layout that has had a row. Its argument is only valid during the call.
  // Appending to that layout waits meanwhile: be quick.
  void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const;

  // Takes series out of what VisitLatestRows() shows, unless they have a value newer than their
  // end. Nothing is written: after a restart they are there again until they are old. What is
  // stored and what queries see stays.
  void EndLatest(const std::vector<SeriesEnd>& ends);

  enum class EventOrder { kOldestFirst, kNewestFirst };
  // Calls `visit` for the events of a job in [begin_ns, end_ns), where INT64_MAX is "no end", one
  // after the other, until it returns false. No such job: not at all.
  absl::Status VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                           EventOrder order, absl::FunctionRef<bool(Event)> visit) const;
  // All of them, ascending in time.
  absl::StatusOr<std::vector<Event>> Events(absl::string_view job, int64_t begin_ns,
                                            int64_t end_ns) const;

  // How much of the limits is used: the `top` largest jobs, metrics and labels of all jobs in
  // memory, or of one job, which is brought into memory.
  //   NOT_FOUND  there is no such job.
  absl::StatusOr<CardinalityReport> Cardinality(absl::string_view job, size_t top) const;

  // --- Upkeep --------------------------------------------------------------------------------

  // Seals every open row now and trims the journal. Returns when it is on disk.
  absl::Status Seal();
  // Merges the small frames that are due, without waiting for the background to do it; only with
  // StoreOptions::background off.
  absl::Status MergeFrames();
  // Drops what is older than the retention, and what exceeds its bytes: all at once, and by
  // StoreOptions::now alone.
  absl::Status EnforceRetention();
  // The same as the background does it, with the limits of StoreOptions::retention_days_per_hour;
  // only with StoreOptions::background off.
  absl::Status RetentionRound();
  // Moves days into the bucket, and off the disk, as far as that is due; only with
  // StoreOptions::background off. See HistoryKeeper::Round().
  absl::Status MoveHistory();
  HistoryState History() const;
  SharedState Shared() const;
  // As in Shared(), but cheap enough to be asked for each message.
  uint64_t unshipped_bytes() const;
  // As StoreStats::queued_bytes, and as cheap.
  uint64_t queued_bytes() const;
  // Copies the state into the bucket, as the background does every SharedOptions::commit_every;
  // only with SharedOptions::on, and StoreOptions::background off.
  absl::Status CommitShared();
  // Takes idle jobs out of memory: see StoreOptions::job_idle.
  absl::Status UnloadIdleJobs();

  // Copies the whole store, as it is at one moment after the call began, into `path`: a directory
  // that does not exist and whose parent does. Everything acknowledged before the call is in it,
  // and it is synced; opened with Open() it is a store of its own. Tables are hard links where the
  // file system allows, so that the cost is that of the log (at most about 256 MiB). Appending and
  // reading go on. After an error something may be left in `path` and in `path`.tmp.
  //   RESOURCE_EXHAUSTED  no room at `path`.
  //   UNAVAILABLE         a disk refuses, or the store does not take writes: see DiskState.
  absl::Status Checkpoint(const std::string& path);

  StoreStats Stats() const;

 private:
  friend class ForwardLog;  // forward_log.h: what was stored, in order, from a durable place on.

  explicit Store(std::unique_ptr<Engine> engine);

  const std::unique_ptr<Engine> engine_;
};

}  // namespace tacho::storage
