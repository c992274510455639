// Which shard this collector owns, in a cluster with spare collectors. It shows that it lives,
// waits until a shard has no owner, takes it, and notices when another collector has taken its own.
// All of that goes through the bucket (storage/shard/owner_map.h, heartbeat.h).
//
//   start ─▶ the map names this collector, or its own shard is free ─▶ owner
//     │                                                             ▲    │ another one took it
//     └────────▶ standby ── an owner is silent, or has ended ───────┘ ◀──┘
//
// Only one collector can acknowledge rows of a shard, whatever is decided here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/background_thread.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "server/takeover/takeover_watch.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/heartbeat.h"
#include "storage/shard/owner_map.h"

namespace tacho::server::takeover {

struct OwnershipOptions {
  storage::Bucket* bucket = nullptr;  // Not owned; must outlive this.
  std::string address;                // This collector's, as the cluster names it.
  std::optional<uint32_t> home;       // The shard that is its own at the start. None: a spare.
  std::vector<std::string> members;   // All addresses: of the shards in their order, then spares.
  uint32_t shards = 1;
  absl::Duration takeover_after = absl::Seconds(20);
  std::string version;
  // It has become the owner of a shard, or is not any more. Called on any thread: return at once.
  std::function<void()> on_change;
  std::function<absl::Time()> monotonic = MonotonicNow;
  std::function<uint64_t()> random;  // Null: the usual.
  log::Log log;
};

// Thread-safe but for Start(), Stop() and destruction.
class Ownership {
 public:
  explicit Ownership(OwnershipOptions options);
  ~Ownership() { Stop(); }

  // From now on looks every second, or four times in takeover_after if that is more often.
  void Start();
  void Stop() { thread_.Stop(); }
  // The process is ready to own a shard: takes the first that it may have, at the next looks. After
  // a loss it has to be called again.
  void Seek() { seeking_ = true; }

  // This collector may have lost its shard. Until a look has found that the map still names it, it
  // owns none; Seek() has to be called for that.
  void Doubt() ABSL_LOCKS_EXCLUDED(looking_, mutex_);

  // The shard that this collector owns now. None: it waits.
  std::optional<uint32_t> shard() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The address of the owner as the last look has seen it; empty: none, or not known.
  std::string OwnerOf(uint32_t shard) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Addresses of the collectors that wait for a shard and live.
  std::vector<std::string> standbys() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Shards that this process has taken from another collector.
  uint64_t takeovers() const { return takeovers_; }

  // Gives the shard up, so that another collector may go on at once, and takes no other. Asks the
  // bucket; if that fails, others wait for takeover_after.
  void Release() ABSL_LOCKS_EXCLUDED(looking_, mutex_);

  // One look, and what follows from it. Start() has it called; tests call it themselves.
  void Look() ABSL_LOCKS_EXCLUDED(looking_, mutex_);

 private:
  absl::Duration BeatEvery() const { return options_.takeover_after / 4; }
  bool Answered(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void Beat(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void SeekShard(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  // Whether this collector may own the shard without waiting.
  std::optional<VacantShard> Own() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void Take(const VacantShard& vacant, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  // The signs of life at these addresses; those that have left none are missing.
  absl::StatusOr<std::map<std::string, storage::Heartbeat>> ReadBeats(
      const std::vector<std::string>& addresses) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void FindStandbys(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_);
  void Become(std::optional<uint32_t> shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(looking_)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const OwnershipOptions options_;
  absl::Mutex looking_;  // One look at a time. Before mutex_.
  storage::OwnerMapObject object_ ABSL_GUARDED_BY(looking_);
  TakeoverWatch watch_ ABSL_GUARDED_BY(looking_);
  storage::Heartbeat beat_ ABSL_GUARDED_BY(looking_);
  absl::Time beat_at_ ABSL_GUARDED_BY(looking_) = absl::InfinitePast();     // The next one.
  absl::Time watch_at_ ABSL_GUARDED_BY(looking_) = absl::InfinitePast();    // The same.
  absl::Time standby_at_ ABSL_GUARDED_BY(looking_) = absl::InfinitePast();  // The same.
  std::map<std::string, uint64_t> counted_
      ABSL_GUARDED_BY(looking_);  // What possible standbys wrote.
  bool released_ ABSL_GUARDED_BY(looking_) = false;
  mutable absl::Mutex mutex_;
  std::optional<uint32_t> shard_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, std::string> owners_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> standbys_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> takeovers_ = 0;
  std::atomic<bool> seeking_ = false;
  RepeatingThread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::takeover
