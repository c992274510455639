// The log of an owner in the bucket: segments under rising numbers, and how far they are known to
// be stored. What is acknowledged must be in a segment up to stored().
//
// The content of a number never changes once it was handed over. So a request may be sent again as
// often as needed, whatever became of the earlier ones, and an object that is there already is
// either the same bytes or somebody else's. In the second case this owner is fenced: a newer one
// has sealed the log, and nothing more may be acknowledged.
//
//   Append() ─▶ [ 7 ][ 8 ][ 9 ] waiting or under way ─ SendOne() ─▶ bucket; stored() is 6 until 7
//   is there, whether 8 and 9 are or not.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

struct ShardLogOptions {
  Bucket* bucket = nullptr;  // Not owned; must outlive the log.
  uint32_t shard = 0;
  uint64_t epoch = 0;  // The one that ClaimShard() got.
  uint64_t nonce = 0;  // Random for each life of the process.
  // How many segments may be handed over and not be stored. Bounds memory, and how much a new owner
  // may find behind a hole.
  size_t window = 4;
};

// Thread-safe. No lock is held while the bucket is asked.
class ShardLog {
 public:
  explicit ShardLog(ShardLogOptions options);

  // Takes the next segment; `after` and `last` as in Segment. Returns its number: 1, 2, 3 and so
  // on.
  //   RESOURCE_EXHAUSTED  the window is full. Nothing was taken: keep the records, and append them
  //                       when stored() is above what it was before this call.
  //   INVALID_ARGUMENT    the records are larger than a segment may be. Cut them.
  //   ABORTED             the owner is fenced.
  absl::StatusOr<uint64_t> Append(const std::vector<std::string>& records, uint64_t after,
                                  uint64_t last) ABSL_LOCKS_EXCLUDED(mutex_);

  enum class Sent {
    kNothing,  // Nobody needs to be sent: there is none, or others are sending them all.
    kStored,   // It is in the bucket.
    kUnknown,  // No answer, or an error: wait, then call again. last_error() says why.
    kFenced,   // See fenced().
  };
  // Sends the segment with the lowest number that no other thread is sending. Blocks as the bucket
  // does. As many threads as the window is wide may call it.
  Sent SendOne() ABSL_LOCKS_EXCLUDED(mutex_);

  // All segments up to this number are in the bucket. Never falls. 0: none.
  uint64_t stored() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A newer owner has the shard. stored() stays where it is from now on, and Append() refuses.
  bool fenced() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller knows that it is fenced, by the manifest or the map.
  void Fence() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until stored() is above `number`. Returns it.
  //   ABORTED    the owner is fenced.
  //   CANCELLED  Close() was called.
  absl::StatusOr<uint64_t> AwaitStoredAbove(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until SendOne() has something to send. False: fenced or closed, so it never will.
  bool AwaitWork() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all waits. What is not stored stays unsent.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // How the last request ended.
  absl::Status last_error() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Bytes of the segments that are not known to be stored.
  uint64_t unstored_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t epoch() const { return options_.epoch; }

 private:
  enum class State { kEncoding, kWaiting, kUnderWay, kStored };
  struct Unstored {
    std::string bytes;
    State state = State::kEncoding;
  };

  // Creates the object, or finds out whose object is there.
  Sent Store(uint64_t number, const std::string& bytes, absl::Status* error);
  Sent Finish(uint64_t number, Sent sent, absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWaiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWorkOrEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardLogOptions options_;

  mutable absl::Mutex mutex_;
  uint64_t stored_ ABSL_GUARDED_BY(mutex_) = 0;
  // For the numbers from `stored_` + 1 on. Only the front is removed, and none while it is under
  // way, so the bytes that a thread is sending stay where they are.
  std::deque<Unstored> unstored_ ABSL_GUARDED_BY(mutex_);
  uint64_t unstored_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool fenced_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage
