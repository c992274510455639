// A store whose disk the test works by hand: what is appended waits until Commit() or Fail().
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/store.h"
#include "tests/support/series_maker.h"

namespace tacho::server::ingest {

// Thread-safe. Reading is not there: the ingest service does not read.
class FakeStore final : public storage::Store {
 public:
  struct Entry {
    std::string kind;  // "rows", "event", "attributes" or "gap".
    storage::Origin origin;
    storage::LayoutPtr layout;
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<uint64_t> value_bits;
    storage::Event event;
    storage::Attributes attributes;
    storage::SequenceRange lost;
    std::string reason;
  };

  // Every Append*() commits at once from now on.
  void CommitAtOnce() {
    absl::MutexLock lock(&mutex_);
    at_once_ = true;
  }
  // Columns from this on are refused, every second for the job's sake.
  void SetMaxSeriesPerLayout(size_t series) { max_series_per_layout_ = series; }
  // These columns are stored as one.
  void SetFolded(std::vector<uint32_t> columns) { folded_ = std::move(columns); }
  void SetRoomForJobs(bool room) { room_for_jobs_ = room; }
  // Every Append*() is refused at once, as with a full queue.
  void SetQueueFull(bool full) {
    absl::MutexLock lock(&mutex_);
    full_ = full;
  }

  // Settles everything that waits; returns how much that was.
  size_t Commit() { return Settle(absl::OkStatus()); }
  size_t Fail(const absl::Status& status) { return Settle(status); }
  // Waits until `count` messages wait for the disk.
  bool AwaitQueued(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto queued = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return queue_.size() >= count;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&queued), absl::Seconds(20));
  }

  // What was committed, repeats left out.
  std::vector<Entry> stored() const {
    absl::MutexLock lock(&mutex_);
    return stored_;
  }

  absl::Status Close() override {
    Commit();
    return absl::OkStatus();
  }

  absl::StatusOr<Registration> RegisterLayout(
      const storage::LayoutDefinition& definition) override {
    Registration registration;
    registration.limits = limits();
    std::vector<storage::SeriesPtr> stored;
    for (uint32_t column = 0; column < definition.series.size(); ++column) {
      if (column >= max_series_per_layout_) {
        registration.breaches.push_back(
            {.column = column,
             .limit = column % 2 == 1 ? storage::Limit::kJobSeries : storage::Limit::kSeries});
        continue;
      }
      if (std::count(folded_.begin(), folded_.end(), column) > 0) {
        registration.breaches.push_back({.column = column,
                                         .limit = storage::Limit::kLabelValues,
                                         .action = storage::LimitAction::kFold,
                                         .label = 0});
        continue;
      }
      registration.columns.push_back(column);
      const storage::SeriesDefinition& series = definition.series[column];
      stored.push_back(storage::MakeSeries({}, series.metric, {}, series.labels));
    }
    if (!folded_.empty()) {
      registration.folded.push_back(folded_);
      stored.push_back(storage::MakeSeries({}, definition.series[folded_[0]].metric, {}, {}));
    }
    if (!stored.empty()) {
      registration.layout = storage::MakeLayout(
          {.id = 1, .attempt = definition.source.attempt, .has_steps = definition.has_steps},
          std::move(stored));
      absl::MutexLock lock(&mutex_);
      layouts_.push_back(registration.layout);
    }
    return registration;
  }
  void SetLimits(std::shared_ptr<const storage::LimitPolicy> limits) override {
    limits_ = std::move(limits);
  }
  std::shared_ptr<const storage::LimitPolicy> limits() const override { return limits_; }
  bool HasRoomForJob(absl::string_view) const override { return room_for_jobs_; }
  absl::StatusOr<storage::CardinalityReport> Cardinality(absl::string_view, size_t) const override {
    return storage::CardinalityReport();
  }
  absl::StatusOr<storage::LayoutPtr> FindLayout(storage::JobId, storage::LayoutId) const override {
    return absl::NotFoundError("its job has expired");
  }
  // As a job that leaves the index does.
  void ForgetLayouts() {
    absl::MutexLock lock(&mutex_);
    layouts_.clear();
  }

  void AppendRows(const storage::Origin& origin, const storage::LayoutPtr& layout,
                  const storage::RowsView& rows, storage::AppendDone done) override {
    Entry entry{.kind = "rows", .origin = origin, .layout = layout};
    entry.times.assign(rows.times.begin(), rows.times.end());
    entry.steps.assign(rows.steps.begin(), rows.steps.end());
    for (const double value : rows.values) {
      entry.value_bits.push_back(std::bit_cast<uint64_t>(value));
    }
    Append(std::move(entry), std::move(done));
  }
  void AppendEvent(const storage::Origin& origin, const storage::Event& event,
                   storage::AppendDone done) override {
    Append({.kind = "event", .origin = origin, .event = event}, std::move(done));
  }
  void AppendAttributes(const storage::Origin& origin, const storage::Attributes& attributes,
                        storage::AppendDone done) override {
    Append({.kind = "attributes", .origin = origin, .attributes = attributes}, std::move(done));
  }
  void AppendGap(const storage::Origin& origin, storage::SequenceRange lost, uint64_t /*rows*/,
                 absl::string_view reason, storage::AppendDone done) override {
    Append({.kind = "gap", .origin = origin, .lost = lost, .reason = std::string(reason)},
           std::move(done));
  }
  storage::SequenceSet DurableSequences(absl::string_view agent_id,
                                        uint64_t generation) const override {
    absl::MutexLock lock(&mutex_);
    const auto found = durable_.find({std::string(agent_id), generation});
    return found == durable_.end() ? storage::SequenceSet() : found->second;
  }

  std::vector<storage::JobSummary> Jobs() const override { return {}; }
  std::optional<storage::JobDetail> FindJob(absl::string_view) const override { return {}; }
  absl::StatusOr<std::vector<storage::AttemptInfo>> Attempts(absl::string_view) const override {
    return std::vector<storage::AttemptInfo>();
  }
  absl::StatusOr<storage::JobEntities> Entities(absl::string_view) const override {
    return storage::JobEntities();
  }
  absl::StatusOr<std::vector<storage::MetricUse>> Metrics(absl::string_view) const override {
    return std::vector<storage::MetricUse>();
  }
  absl::StatusOr<storage::JobOutline> Outline(absl::string_view, bool) const override {
    return storage::JobOutline();
  }
  absl::StatusOr<std::vector<storage::SeriesPtr>> FindSeries(const storage::Selector&,
                                                             size_t) const override {
    return std::vector<storage::SeriesPtr>();
  }
  std::unique_ptr<storage::ReadView> OpenView(std::vector<storage::SeriesPtr>) const override {
    return nullptr;
  }
  std::unique_ptr<storage::JobView> OpenJobView(absl::string_view) const override {
    return nullptr;
  }
  std::unique_ptr<storage::Subscription> Subscribe(
      storage::SubscribeOptions, std::unique_ptr<storage::JobView>*) const override {
    return nullptr;
  }
  absl::StatusOr<std::vector<std::optional<storage::LatestSample>>> LatestOf(
      const std::vector<storage::SeriesPtr>& series) const override {
    return std::vector<std::optional<storage::LatestSample>>(series.size());
  }
  void VisitLatestRows(const std::function<void(const storage::LatestRow&)>&) const override {}
  absl::Status VisitEvents(absl::string_view, int64_t, int64_t, EventOrder,
                           absl::FunctionRef<bool(storage::Event)>) const override {
    return absl::OkStatus();
  }
  absl::Status Seal() override { return absl::OkStatus(); }
  absl::Status MergeFrames() override { return absl::OkStatus(); }
  absl::Status EnforceRetention() override { return absl::OkStatus(); }
  absl::Status UnloadIdleJobs() override { return absl::OkStatus(); }
  absl::Status Checkpoint(const std::string&) override { return absl::OkStatus(); }
  storage::StoreStats Stats() const override { return {}; }

 private:
  using Queue = std::deque<std::pair<Entry, storage::AppendDone>>;

  void Append(Entry entry, storage::AppendDone done) {
    bool at_once = false;
    {
      absl::MutexLock lock(&mutex_);
      if (!full_) queue_.emplace_back(std::move(entry), done);
      at_once = at_once_;
      if (full_) at_once = false;
      if (!full_ && !at_once) return;
    }
    if (at_once) {
      Commit();
    } else {
      done(absl::ResourceExhaustedError("queue full"));
    }
  }

  size_t Settle(const absl::Status& status) {
    Queue queue;
    {
      absl::MutexLock lock(&mutex_);
      queue.swap(queue_);
      for (auto& [entry, done] : queue) {
        if (status.ok()) Keep(entry);
      }
    }
    for (auto& [entry, done] : queue) done(status);
    return queue.size();
  }

  void Keep(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    storage::SequenceSet& durable = durable_[{entry.origin.agent_id, entry.origin.generation}];
    if (entry.origin.sequence != 0 && durable.Contains(entry.origin.sequence)) return;
    if (entry.origin.sequence != 0) durable.Add(entry.origin.sequence);
    if (entry.kind == "gap" && entry.lost.first != 0) durable.Add(entry.lost);
    stored_.push_back(entry);
  }

  size_t max_series_per_layout_ = SIZE_MAX;
  std::vector<uint32_t> folded_;
  bool room_for_jobs_ = true;
  std::shared_ptr<const storage::LimitPolicy> limits_ = storage::LimitPolicy::Default();
  mutable absl::Mutex mutex_;
  bool at_once_ ABSL_GUARDED_BY(mutex_) = false;
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  Queue queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> stored_ ABSL_GUARDED_BY(mutex_);
  std::vector<storage::LayoutPtr> layouts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, uint64_t>, storage::SequenceSet> durable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::ingest
