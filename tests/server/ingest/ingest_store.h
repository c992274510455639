// A store on a file system in memory whose disk the test works by hand: commits wait until Commit()
// or Fail().
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "storage/db/crash_point.h"
#include "storage/store.h"
#include "tests/support/faulty_env.h"

namespace tacho::server::ingest {

// Thread-safe.
class IngestStore {
 public:
  // Rows or an event that was committed; repeats are not.
  struct Entry {
    std::string kind;  // "rows" or "event".
    storage::LayoutPtr layout;
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
    std::vector<uint64_t> value_bits;
    storage::Event event;
  };

  explicit IngestStore(absl::Time now) : now_(now) {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = &env_;
    options.background = false;
    options.commit_spacing = absl::ZeroDuration();
    options.queue_bytes = 4 << 20;
    options.now = [this] {
      absl::MutexLock lock(&mutex_);
      return now_;
    };
    options.at_point = [this](absl::string_view point) {
      if (point != storage::crash_point::kCommitStaged) return;
      absl::MutexLock lock(&mutex_);
      blocked_ = !open_;
      mutex_.Await(absl::Condition(&open_));
      blocked_ = false;
    };
    auto store = storage::Store::Open(std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    changes_ = store_->Subscribe({.job = "", .every_job = true, .buffer_bytes = 64 << 20}, nullptr);
  }
  ~IngestStore() {
    CommitAtOnce();
    changes_.reset();
  }

  storage::Store* get() const { return store_.get(); }
  storage::Store* operator->() const { return get(); }

  // Every commit goes through at once from now on.
  void CommitAtOnce() {
    absl::MutexLock lock(&mutex_);
    at_once_ = open_ = true;
  }
  // Commits everything that waits; returns how many messages that were.
  size_t Commit() {
    const size_t waiting = Waiting();
    bool settled = false;
    store_->AppendGap({}, {0, 0}, 0, "", [&](const absl::Status&) {
      absl::MutexLock lock(&mutex_);
      settled = true;
      open_ = at_once_;
    });
    {
      absl::MutexLock lock(&mutex_);
      if (!settled) open_ = true;  // For what came before, and nothing else.
      mutex_.Await(absl::Condition(&settled));
    }
    // What was appended since waits, or there is nothing.
    while (Waiting() > 0 && !Blocked()) absl::SleepFor(absl::Milliseconds(1));
    return waiting;
  }
  // The disk refuses everything that waits, and then works again.
  void Fail() {
    env_.RefuseWrites(true);
    Commit();
    env_.RefuseWrites(false);
  }
  // Waits until every message that was appended has settled. The disk must be at work.
  void AwaitSettled() const {
    absl::Notification settled;
    store_->AppendGap({}, {0, 0}, 0, "", [&](const absl::Status&) { settled.Notify(); });
    settled.WaitForNotification();
    while (Waiting() > 0) absl::SleepFor(absl::Milliseconds(1));
  }
  // Waits until `count` messages wait for the disk.
  bool AwaitQueued(size_t count) const {
    for (int i = 0; i < 20'000 && Waiting() < count; ++i) absl::SleepFor(absl::Milliseconds(1));
    return Waiting() >= count;
  }
  // Fills the queue, whose disk must not be at work.
  void FillQueue() const {
    const auto full = std::make_shared<std::atomic<bool>>(false);
    for (uint64_t sequence = 1; !*full; ++sequence) {
      store_->AppendGap({"filler", 1, sequence}, {0, 0}, 0, "",
                        [full](const absl::Status& status) { *full = *full || !status.ok(); });
    }
  }

  // Lets every job expire that has rows.
  void ExpireJobs() {
    const absl::Duration longer_than_any_retention = absl::Hours(24 * 1000);
    stored();
    ForgetLayouts();
    SetNow(longer_than_any_retention);
    EXPECT_TRUE(store_->Seal().ok());
    EXPECT_TRUE(store_->EnforceRetention().ok());
    SetNow(-longer_than_any_retention);
  }
  // Changes the limits on series.
  void Limit(const std::function<void(storage::LimitPolicy::Options*)>& change) const {
    storage::LimitPolicy::Options options;
    change(&options);
    auto policy = storage::LimitPolicy::Create(std::move(options));
    ASSERT_TRUE(policy.ok()) << policy.status();
    store_->SetLimits(*std::move(policy));
  }

  // What was committed.
  std::vector<Entry> stored() {
    std::vector<storage::Change> changes;
    EXPECT_TRUE(changes_->Take(&changes).ok());
    absl::MutexLock lock(&mutex_);
    for (const storage::Change& change : changes) stored_.push_back(EntryOf(change));
    return stored_;
  }
  // Losses that were recorded.
  std::vector<storage::Event> losses() const {
    const auto events = store_->Events("", INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    return *events;
  }

 private:
  static Entry EntryOf(const storage::Change& change) {
    if (change.event != nullptr) return {.kind = "event", .event = *change.event};
    Entry entry{.kind = "rows", .layout = change.layout};
    for (size_t row = 0; row < change.rows.rows; ++row) {
      entry.times.push_back(change.rows.Time(row));
      entry.steps.push_back(change.rows.Step(row));
      for (size_t column = 0; column < change.rows.columns; ++column) {
        entry.value_bits.push_back(std::bit_cast<uint64_t>(change.rows.Value(row, column)));
      }
    }
    return entry;
  }
  // Held, they would keep their jobs in memory.
  void ForgetLayouts() {
    absl::MutexLock lock(&mutex_);
    for (Entry& entry : stored_) entry.layout = nullptr;
  }
  size_t Waiting() const { return store_->Stats().queued_messages; }
  bool Blocked() const {
    absl::MutexLock lock(&mutex_);
    return blocked_;
  }
  void SetNow(absl::Duration later) {
    absl::MutexLock lock(&mutex_);
    now_ += later;
  }

  storage::FaultyEnv env_;
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
  bool at_once_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;     // Commits go through.
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;  // A commit waits.
  std::vector<Entry> stored_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<storage::Subscription> changes_;
};

}  // namespace tacho::server::ingest
