// The Store that there is, in one class of several files: each has one part of its life.
//
//   durable_store.cc           parts, writing, closing, figures
//   durable_store_recovery.cc  from what the disk holds to what is in memory
//   durable_store_reading.cc   jobs, series, latest values, events
//   durable_store_watching.cc  views of a whole job, subscriptions
//   durable_store_upkeep.cc    sealing, trimming, retention, idle jobs
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "storage/change_feed.h"
#include "storage/columns/column_cache.h"
#include "storage/columns/frame_merger.h"
#include "storage/columns/sealer.h"
#include "storage/committer.h"
#include "storage/db/database.h"
#include "storage/db/kept_writes.h"
#include "storage/head/head.h"
#include "storage/index/job_table.h"
#include "storage/index/series_index.h"
#include "storage/journal/journal.h"
#include "storage/journal/loss_runs.h"
#include "storage/store.h"

namespace rocksdb {
struct ReadOptions;
}

namespace tacho::storage {

// Under which events are kept that belong to no job.
inline constexpr JobId kNoJob = 0;

class StoredView;

class DurableStore final : public Store {
 public:
  DurableStore(StoreOptions options, std::unique_ptr<Database> database);
  ~DurableStore() override { Close().IgnoreError(); }

  // Rebuilds what is in memory, then starts the threads.
  absl::Status Recover();
  absl::Status Close() override;

  absl::StatusOr<LayoutPtr> FindLayout(JobId job, LayoutId layout) const override {
    return index_.FindLayout(job, layout);
  }
  absl::StatusOr<Registration> RegisterLayout(const LayoutDefinition& definition) override {
    Reach(options_.at_point, crash_point::kRegisterBegin);
    TACHO_RETURN_IF_ERROR(committer_.refusal());
    auto registration = index_.Register(definition);
    Reach(options_.at_point, crash_point::kRegisterEnd);
    return registration;
  }
  void SetLimits(std::shared_ptr<const LimitPolicy> limits) override {
    index_.SetLimits(std::move(limits));
  }
  std::shared_ptr<const LimitPolicy> limits() const override { return index_.limits(); }
  bool HasRoomForJob(absl::string_view job) const override { return index_.HasRoomForJob(job); }
  absl::StatusOr<CardinalityReport> Cardinality(absl::string_view job, size_t top) const override {
    return index_.Cardinality(job, top);
  }
  void AppendRows(const Origin& origin, const LayoutPtr& layout, const RowsView& rows,
                  AppendDone done) override;
  void AppendEvent(const Origin& origin, const Event& event, AppendDone done) override;
  void AppendAttributes(const Origin& origin, const Attributes& attributes,
                        AppendDone done) override;
  // Messages of an agent that were given up one by one are one event a minute.
  void AppendGap(const Origin& origin, SequenceRange lost, uint64_t rows, absl::string_view reason,
                 AppendDone done) override;
  SequenceSet DurableSequences(absl::string_view agent_id, uint64_t generation) const override {
    return committer_.DurableSequences(agent_id, generation);
  }

  std::vector<JobSummary> Jobs() const override;
  std::optional<JobDetail> FindJob(absl::string_view job) const override;
  absl::StatusOr<std::vector<AttemptInfo>> Attempts(absl::string_view job) const override;
  absl::StatusOr<JobEntities> Entities(absl::string_view job) const override;
  absl::StatusOr<std::vector<MetricUse>> Metrics(absl::string_view job) const override;
  absl::StatusOr<JobOutline> Outline(absl::string_view job, bool hosts) const override;
  absl::StatusOr<std::vector<SeriesPtr>> FindSeries(const Selector& selector,
                                                    size_t limit) const override {
    return index_.Find(selector, limit);
  }
  std::unique_ptr<ReadView> OpenView(std::vector<SeriesPtr> series) const override;
  std::unique_ptr<JobView> OpenJobView(absl::string_view job) const override;
  std::unique_ptr<Subscription> Subscribe(SubscribeOptions options,
                                          std::unique_ptr<JobView>* view) const override;
  absl::StatusOr<std::vector<std::optional<LatestSample>>> LatestOf(
      const std::vector<SeriesPtr>& series) const override;
  void VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const override {
    head_.VisitLatestRows(visit);
  }
  absl::Status VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                           EventOrder order, absl::FunctionRef<bool(Event)> visit) const override;

  absl::Status Seal() override;
  absl::Status MergeFrames() override { return merger_.MergeDue(); }
  absl::Status EnforceRetention() override;
  absl::Status UnloadIdleJobs() override;
  absl::Status Checkpoint(const std::string& path) override { return database_->Checkpoint(path); }
  StoreStats Stats() const override;

 private:
  class StoredJobView;
  // VisitEvents() of a job with this id and name.
  absl::Status VisitEventsOf(const rocksdb::ReadOptions& read, JobId id, absl::string_view job,
                             int64_t begin_ns, int64_t end_ns, EventOrder order,
                             absl::FunctionRef<bool(Event)> visit) const;
  // Between commits.
  std::unique_ptr<JobView> CaptureJob(absl::string_view job) const;
  absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> ReadSealedPositions() const;
  absl::Status ReplayJournal();
  absl::Status PutEvent(const Event& event, rocksdb::WriteBatch* write);
  void TrimJournal();
  // Rows of a commit are in the head: whether the sealer has work. On the committer's thread.
  void NoteAppended();
  // Journal positions before this must be sealed for the journal to keep its bound; 0: it does.
  uint64_t PositionsToSeal() const;
  std::unique_ptr<StoredView> OpenStoredView(const std::vector<SeriesPtr>& series) const;
  absl::StatusOr<std::optional<LatestSample>> ReadLatest(StoredView* view,
                                                         const SeriesPtr& series) const;
  // Waits while open rows take too much memory, for as long as sealing gets on with it.
  void AwaitRoom();
  // RESOURCE_EXHAUSTED if sealing is so far behind that no rows may come.
  absl::Status CheckRoom() const;
  // What has been stored of a job so far is not in the head.
  void HeadForgets(JobId job);
  // Runs `work` on the committer's thread, between commits, and waits for it.
  absl::Status OnCommitter(std::function<absl::Status(rocksdb::WriteBatch*)> work);
  void RemoveJob(JobId job, rocksdb::WriteBatch* write);
  // The first day that retention_bytes lets stay; INT64_MIN: all do.
  int64_t FirstDayWithinBytes();
  absl::StatusOr<std::vector<JobId>> JobsWithEventsBefore(int64_t time_ns) const;
  // Forgets the events before a time, and the jobs whose rows all are.
  absl::Status ForgetBefore(int64_t time_ns);
  void UnloadIdleJobsWhenDue();
  absl::Status LoadBusyJobs();
  void Log(absl::string_view line) const {
    if (options_.log != nullptr) options_.log(line);
  }

  const StoreOptions options_;
  const std::unique_ptr<Database> database_;
  mutable ColumnCache columns_;  // Of the partitions.
  Journal journal_;              // Committer's thread only, but for recovery.
  // Reading may bring a job into memory, which changes nothing that a reader can tell.
  mutable SeriesIndex index_;
  Head head_;
  mutable JobTable jobs_;
  KeptWrites kept_;  // Removals, which memory has forgotten already.
  mutable ChangeFeed feed_;
  mutable Committer committer_;  // Looking between two commits changes nothing.
  FrameMerger merger_;
  Sealer sealer_;
  std::atomic<uint64_t> next_event_ = 1;
  LossRuns loss_runs_;  // Committer's thread only.
  std::atomic<uint64_t> partitions_dropped_ = 0;
  // Rows up to this time may have come that the head knows nothing of.
  std::atomic<int64_t> head_knows_after_ns_ = INT64_MIN;
  std::atomic<uint64_t> over_retention_bytes_ = 0;
  // Of the journal, for others than the committer's thread.
  std::atomic<uint64_t> journal_begin_ = 0;
  std::atomic<uint64_t> journal_end_ = 0;
  std::atomic<uint64_t> journal_bytes_ = 0;
  absl::Time next_retention_;   // Sealer's thread only.
  absl::Time next_idle_round_;  // Sealer's thread only.
  bool running_ = false;
};

}  // namespace tacho::storage
