// Group commit: what many streams append becomes one synced write.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/change_feed.h"
#include "storage/db/commit_mark.h"
#include "storage/db/crash_point.h"
#include "storage/db/disk_watch.h"
#include "storage/head/head.h"
#include "storage/index/job_table.h"
#include "storage/index/series_index.h"
#include "storage/journal/journal.h"
#include "storage/journal/sequence_set.h"
#include "storage/model/event.h"
#include "storage/store.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Status;
class WriteBatch;
}  // namespace rocksdb

namespace tacho::storage {

// One thread that writes the journal. Thread-safe but for Recover(), Start() and Stop().
//
// Durable sequences are kept in "state" and written with the messages they stand for, all or
// nothing: that is what makes a repeat recognisable after a crash.
class Committer {
 public:
  struct Parts {  // Not owned; they must outlive the committer.
    rocksdb::DB* db = nullptr;
    rocksdb::ColumnFamilyHandle* state = nullptr;
    rocksdb::ColumnFamilyHandle* events = nullptr;
    Journal* journal = nullptr;
    SeriesIndex* index = nullptr;
    Head* head = nullptr;
    JobTable* jobs = nullptr;
    ChangeFeed* feed = nullptr;
    CommitMark* mark = nullptr;  // Says how far the commits have gone.
    std::function<absl::Time()> now;
    // Before a commit: may wait for room, as senders then wait for their acknowledgements.
    std::function<void()> before_commit;
    std::function<void()> after_append;  // Rows of a commit are in the head.
    DiskWatch* disk = nullptr;
    std::function<void(DiskState, const absl::Status&)> on_disk;  // As StoreOptions::on_disk.
    // The disk takes writes again: writes what was kept meanwhile. Everything is refused until it
    // returns OK.
    std::function<absl::Status()> before_resuming;
    AtPoint at_point;
    // A request is done only once NoteShipped() says so.
    bool hold = false;
  };
  Committer(Parts parts, uint64_t queue_bytes, absl::Duration spacing);
  ~Committer();

  // Reads the durable sequences and the count of commits. Call once, first.
  absl::Status Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  // What the database has: before Start() only.
  const CommitCount& count() const { return count_; }
  void Start();
  // Commits what is queued and joins the thread. Later requests are refused.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // One message, or work to be done between commits.
  struct Request {
    Origin origin;
    LayoutPtr layout;  // With `entry`: rows for the journal.
    std::string entry;
    uint64_t rows = 0;                                        // In `entry`.
    std::function<absl::Status(rocksdb::WriteBatch*)> stage;  // Else: what to write, on the thread.
    std::shared_ptr<const Event> event;  // What `stage` writes, for subscribers of its job.
    SequenceRange lost;   // Sequences to count as durable besides the origin's; first 0: none.
    bool upkeep = false;  // The store's own work: a full queue does not refuse it.
    AppendDone done;

    // Its bytes in the queue, with what it takes besides its entry.
    uint64_t weight() const { return entry.size() + 256; }
    uint64_t queued = 0;  // Its weight when it was queued: a commit moves the entry on.
  };
  // Queues a request; a full queue calls its `done` with RESOURCE_EXHAUSTED at once.
  void Enqueue(Request request) ABSL_LOCKS_EXCLUDED(mutex_);

  // By Request::weight(), of what waits for a commit or is in one.
  uint64_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }

  // Calls `look` while no commit is at work: what it finds durable is what it finds in memory.
  // Commits wait meanwhile, and it may have to wait for one.
  void BetweenCommits(absl::FunctionRef<void()> look) ABSL_LOCKS_EXCLUDED(commit_, mutex_) {
    absl::MutexLock lock(&commit_);
    look();
  }

  // OK, or why everything is refused now.
  absl::Status refusal() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A call counts as contact with the agent. With Parts::hold: those that are in the bucket.
  SequenceSet DurableSequences(absl::string_view agent_id, uint64_t generation) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // --- Acknowledgements that wait for the bucket, committer_held.cc; only with Parts::hold
  // ---------

  // Everything up to this sequence of the database is in the bucket: ends the requests that waited
  // for it.
  void NoteShipped(uint64_t sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all requests that wait, and those that come, with this status. For good.
  void Fence(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  struct Held {
    uint64_t bytes = 0;                         // Of requests that wait.
    absl::Time since = absl::InfiniteFuture();  // MonotonicNow() when the oldest came.
  };
  Held held() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }

  // Forgets the agents that were last heard of before that day, and adds the removal of their
  // records to a write. For a request's `stage`. Should such an agent come again after all, its
  // rows of that time are older than what is kept.
  void ForgetAgents(uint32_t before_day, rocksdb::WriteBatch* write) ABSL_LOCKS_EXCLUDED(mutex_);
  void FillStats(StoreStats* stats) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Origins = absl::flat_hash_map<std::string, OriginRecord>;  // By OriginKey().

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for requests, and at least for `pause` unless the queue is half full; false when stopped.
  // Returns without any now and then, and soon when the disk is in trouble.
  bool Take(absl::Duration pause, std::vector<Request>* group) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stages the group, writes and syncs it, brings it into memory, and calls back.
  void Commit(std::vector<Request>* group) ABSL_LOCKS_EXCLUDED(commit_, mutex_);
  // Between commits: sits out trouble, and takes rows again once there is room.
  void LookAtDisk() ABSL_LOCKS_EXCLUDED(mutex_);
  // Refuses everything until the disk takes writes again, or for good. The ballast is given up.
  void SitOutTrouble() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on rows are refused, for the disk is nearly full, but upkeep, which makes room, goes
  // on.
  void WaitForRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same when it has just turned out: gives up the ballast.
  void FindNoRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  void RefuseRows(std::vector<Request>* group) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls on_disk if this is new.
  void Tell(DiskState state) ABSL_LOCKS_EXCLUDED(mutex_);
  // One try; true if writing goes on.
  bool TryResume() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the group adds to `write`; `results` has one status a request.
  struct Staged {
    Origins origins;                           // As they will be.
    absl::flat_hash_set<std::string> changed;  // Keys of those that differ from before.
    std::vector<uint64_t> positions;           // Journal position a request; 0 if it has none.
    std::vector<absl::Status> results;
    std::vector<bool> stored;  // A request each: it is new and was staged.
    uint64_t repeats = 0;
    bool anything = false;
    CommitCount count;  // With this commit.
  };
  Staged Stage(const std::vector<Request>& group, rocksdb::WriteBatch* write)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Brings the layout's job into memory: it may have left while the layout was held.
  absl::Status UseJob(const Layout& layout);
  // The count of commits once the group is durable.
  CommitCount CountWith(const std::vector<Request>& group, const Staged& staged) const;
  uint32_t Today() const;
  SequenceSet* FindSet(const std::string& key, Staged* staged) ABSL_LOCKS_EXCLUDED(mutex_);
  // The write that is used again for each commit, with room for the group.
  rocksdb::WriteBatch* EmptyWrite(const std::vector<Request>& group);
  rocksdb::Status Write(rocksdb::WriteBatch* write);
  // The disk refused a commit: everything is refused from now on, with the status it returns.
  absl::Status RefuseAfter(const rocksdb::Status& failure) ABSL_LOCKS_EXCLUDED(mutex_);
  void CountCommit(absl::Duration took) ABSL_LOCKS_EXCLUDED(mutex_);
  void Apply(const std::vector<Request>& group, const Staged& staged) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the entries of rows to the subscribers: they are gone from the group.
  void Publish(const Staged& staged, std::vector<Request>* group);

  // --- committer_held.cc -----------------------------------------------------------------------
  struct HeldGroup {
    uint64_t sequence = 0;  // The newest of the database when the group was written.
    uint64_t bytes = 0;
    absl::Time since;
    std::vector<std::pair<std::string, SequenceSet>> durable;  // By OriginKey(), as it became.
    std::vector<std::pair<AppendDone, absl::Status>> done;
  };
  // Ends the group's requests once they are in the bucket; upkeep at once.
  void Hold(std::vector<Request>* group, const Staged& staged) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the groups that are in the bucket.
  std::vector<HeldGroup> TakeShipped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Parts parts_;
  const uint64_t max_queue_bytes_;
  const absl::Duration spacing_;  // As StoreOptions::commit_spacing.

  absl::Mutex commit_ ABSL_ACQUIRED_BEFORE(mutex_);  // Held from a write until all know of it.
  mutable absl::Mutex mutex_;
  std::vector<Request> queue_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> queued_bytes_ = 0;  // Written with mutex_ held.
  uint64_t queued_messages_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);         // While not OK, rows are refused with it.
  bool upkeep_goes_on_ ABSL_GUARDED_BY(mutex_) = false;  // Nevertheless.
  bool failed_ = false;                    // For good. Committer's thread only, as the next three.
  DiskState told_ = DiskState::kWritable;  // To on_disk.
  CommitCount count_;                      // It counts what is durable.
  absl::Time next_resume_ = absl::InfinitePast();    // When trouble in the background is looked at.
  mutable Origins origins_ ABSL_GUARDED_BY(mutex_);  // Reading one notes the contact.
  StoreStats stats_ ABSL_GUARDED_BY(mutex_);
  uint64_t shipped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<HeldGroup> held_ ABSL_GUARDED_BY(mutex_);  // In the order of their sequences.
  std::atomic<uint64_t> held_bytes_ = 0;                // Of held_. Written with mutex_ held.
  // What of each agent is in the bucket, by OriginKey().
  absl::flat_hash_map<std::string, SequenceSet> shared_ ABSL_GUARDED_BY(mutex_);
  absl::Status fence_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<rocksdb::WriteBatch> write_;  // The thread's, used again for each commit.
  std::thread thread_;
};

}  // namespace tacho::storage
