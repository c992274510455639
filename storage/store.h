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
#include "storage/model/latest.h"
#include "storage/model/rows.h"
#include "storage/model/series.h"
#include "storage/model/series_reader.h"
#include "storage/model/stats.h"
#include "storage/options.h"

namespace tacho::storage {

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

  using Registration = storage::Registration;
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
