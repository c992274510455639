// A bucket in memory that keeps the promises of bucket.h as the services keep them, with their
// differences (facts and sources: docs/bucket.md) and with faults at will.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/bucket_request.h"

namespace tacho::storage {

enum class BucketPersonality {
  kAws,  // Tags are made of the content: equal contents have equal tags.
  kGcs,  // Tags are generations: each write has another.
  kRgw,  // Ceph 16, no versions. Tags as AWS.
  // Ceph 16 in a bucket with versions: it creates over what is there, and never replaces under a
  // condition. No collector may use it for what others share.
  kRgwVersioned,
};

// The objects. Each request happens at once. Thread-safe.
class BucketContents {
 public:
  // Called after each change, with the key and the new body, or null if the object is gone.
  using Observer = std::function<void(const std::string& key, const std::string* body)>;

  explicit BucketContents(BucketPersonality personality) : personality_(personality) {}

  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Objects in a page of a list.
  void set_page_size(size_t page_size) { page_size_ = page_size; }

  BucketAnswer Apply(const BucketRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<std::string> Body(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::string> Keys() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Object {
    std::string body;
    std::string tag;
  };
  BucketAnswer Read(const BucketRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BucketAnswer List(const BucketRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BucketAnswer Write(const BucketRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Condition(const BucketRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NewTag(const std::string& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BucketPersonality personality_;
  Observer observer_;
  size_t page_size_ = 1000;
  mutable absl::Mutex mutex_;
  std::map<std::string, Object, std::less<>> objects_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

enum class BucketFault {
  kNone,
  kRefused,     // Not done; the answer is 503, 429, 409, or a 500: UNAVAILABLE.
  kAnswerLost,  // Done; the caller sees UNAVAILABLE. Also a 500 of something that was done.
  kLate,        // The caller sees UNAVAILABLE; it happens when DeliverLate() is called.
  kTwice,       // Sent again on the way: happens twice; the answer is that of the second time.
  kForbidden,   // Not done: PERMISSION_DENIED.
};

// Thread-safe.
class FakeBucket : public RequestBucket {
 public:
  using Faults = std::function<BucketFault(const BucketRequest& request)>;

  explicit FakeBucket(BucketPersonality personality = BucketPersonality::kAws)
      : contents_(personality) {}

  // Asked at each request, on the thread of the caller, without a lock. May call this bucket's
  // contents(): what it does there happens just before the request.
  void set_faults(Faults faults) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the late requests happen, in the order of their sending.
  void DeliverLate() ABSL_LOCKS_EXCLUDED(mutex_);

  BucketContents& contents() { return contents_; }
  // How many requests there were since the last Reset.
  uint64_t requests() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t requests(BucketRequest::Kind kind) const ABSL_LOCKS_EXCLUDED(mutex_);
  void ResetCounts() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BucketAnswer Ask(BucketRequest request) override ABSL_LOCKS_EXCLUDED(mutex_);

  BucketContents contents_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<Faults> faults_ ABSL_GUARDED_BY(mutex_);  // Shared with calls that are in it.
  std::vector<BucketRequest> late_ ABSL_GUARDED_BY(mutex_);
  std::map<BucketRequest::Kind, uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::storage
