// A bucket that has to show what it can before the first write. Services differ in what they
// promise (bucket_probe.h), and one may be away when the collector starts, so the probe comes with
// the first write and not at the opening. Reads are passed on as they are.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "storage/bucket/bucket.h"
#include "storage/bucket/bucket_options.h"
#include "storage/bucket/bucket_probe.h"

namespace tacho::storage {

// Thread-safe.
class ProvenBucket final : public Bucket {
 public:
  // A bucket that has failed is probed again after this time: somebody may have repaired it.
  static constexpr absl::Duration kPause = absl::Minutes(10);

  struct Options {
    BucketOptions bucket;
    // Whether the bucket has to keep all promises, as for collectors that share it. If not, it is
    // enough that one collector can keep its history there.
    bool to_share = false;
    // Called after each probe that the service answered. May be null.
    std::function<void(const ProbeReport&)> on_report;
    std::function<absl::Time()> monotonic = MonotonicNow;
  };

  // Connects to nothing yet.
  //   INVALID_ARGUMENT  as OpenBucket().
  static absl::StatusOr<std::unique_ptr<ProvenBucket>> Open(Options options);

  // Probes the bucket if that was not done yet. Every write does this first. Several threads that
  // come at once wait for one probe.
  //   FAILED_PRECONDITION  the bucket is not fit for what Options asks. The message says why.
  //   UNAVAILABLE, others  as ProbeBucket(), or the answers were not clear: the next write tries
  //                        again.
  absl::Status Prove() ABSL_LOCKS_EXCLUDED(probing_, mutex_);

  absl::StatusOr<StoredObject> Get(absl::string_view key) override;
  absl::StatusOr<std::optional<StoredObject>> GetIfChanged(absl::string_view key,
                                                           absl::string_view tag) override;
  absl::StatusOr<std::string> GetRange(absl::string_view key, uint64_t offset,
                                       uint64_t bytes) override;
  absl::StatusOr<std::string> PutNew(absl::string_view key, absl::string_view body) override;
  absl::StatusOr<std::string> PutIf(absl::string_view key, absl::string_view tag,
                                    absl::string_view body) override;
  absl::StatusOr<std::string> Put(absl::string_view key, absl::string_view body) override;
  absl::StatusOr<ObjectPage> List(absl::string_view prefix, absl::string_view from) override;
  absl::Status Delete(absl::string_view key) override;

 private:
  ProvenBucket(Options options, std::unique_ptr<Bucket> bucket);

  std::shared_ptr<Bucket> bucket() const ABSL_LOCKS_EXCLUDED(mutex_);
  // OK once it has passed; UNKNOWN: a probe is due.
  absl::Status Known() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Probe() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  absl::Mutex probing_;  // Held by the thread that probes. Before mutex_.
  mutable absl::Mutex mutex_;
  std::shared_ptr<Bucket> bucket_ ABSL_GUARDED_BY(mutex_);
  bool proven_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  absl::Time failed_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace tacho::storage
