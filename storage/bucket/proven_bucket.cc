#include "storage/bucket/proven_bucket.h"

#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::storage {

absl::StatusOr<std::unique_ptr<ProvenBucket>> ProvenBucket::Open(Options options) {
  TACHO_ASSIGN_OR_RETURN(std::unique_ptr<Bucket> bucket, OpenBucket(options.bucket));
  return std::unique_ptr<ProvenBucket>(new ProvenBucket(std::move(options), std::move(bucket)));
}

ProvenBucket::ProvenBucket(Options options, std::unique_ptr<Bucket> bucket)
    : options_(std::move(options)), bucket_(std::move(bucket)) {}

std::shared_ptr<Bucket> ProvenBucket::bucket() const {
  absl::MutexLock lock(&mutex_);
  return bucket_;
}

absl::Status ProvenBucket::Known() const {
  absl::MutexLock lock(&mutex_);
  if (proven_) return absl::OkStatus();
  if (options_.monotonic() < failed_until_) return failure_;
  return absl::UnknownError("not probed yet");
}

absl::Status ProvenBucket::Prove() {
  if (absl::Status known = Known(); !absl::IsUnknown(known)) return known;
  absl::MutexLock lock(&probing_);
  if (absl::Status known = Known(); !absl::IsUnknown(known)) return known;
  return Probe();
}

absl::Status ProvenBucket::Probe() {
  TACHO_ASSIGN_OR_RETURN(const ProbeReport report, ProbeBucket(*bucket()));
  if (options_.on_report != nullptr) options_.on_report(report);
  std::shared_ptr<Bucket> quoting;
  if (report.quote_tags) {
    BucketOptions options = options_.bucket;
    options.quote_tags = true;
    TACHO_ASSIGN_OR_RETURN(quoting, OpenBucket(std::move(options)));
  }
  absl::MutexLock lock(&mutex_);
  if (quoting != nullptr) bucket_ = std::move(quoting);
  proven_ = options_.to_share ? report.fit_to_share : report.fit_for_history;
  if (proven_) return absl::OkStatus();
  // The next write probes again: a service that is in trouble now must not be given up for minutes.
  if (!report.failed) return absl::UnavailableError(report.verdict);
  failed_until_ = options_.monotonic() + kPause;
  failure_ = absl::FailedPreconditionError(report.verdict);
  return failure_;
}

absl::StatusOr<StoredObject> ProvenBucket::Get(absl::string_view key) { return bucket()->Get(key); }

absl::StatusOr<std::optional<StoredObject>> ProvenBucket::GetIfChanged(absl::string_view key,
                                                                       absl::string_view tag) {
  return bucket()->GetIfChanged(key, tag);
}

absl::StatusOr<std::string> ProvenBucket::GetRange(absl::string_view key, uint64_t offset,
                                                   uint64_t bytes) {
  return bucket()->GetRange(key, offset, bytes);
}

absl::StatusOr<ObjectPage> ProvenBucket::List(absl::string_view prefix, absl::string_view from) {
  return bucket()->List(prefix, from);
}

absl::StatusOr<std::string> ProvenBucket::PutNew(absl::string_view key, absl::string_view body) {
  TACHO_RETURN_IF_ERROR(Prove());
  return bucket()->PutNew(key, body);
}

absl::StatusOr<std::string> ProvenBucket::PutIf(absl::string_view key, absl::string_view tag,
                                                absl::string_view body) {
  TACHO_RETURN_IF_ERROR(Prove());
  return bucket()->PutIf(key, tag, body);
}

absl::StatusOr<std::string> ProvenBucket::Put(absl::string_view key, absl::string_view body) {
  TACHO_RETURN_IF_ERROR(Prove());
  return bucket()->Put(key, body);
}

absl::Status ProvenBucket::Delete(absl::string_view key) {
  TACHO_RETURN_IF_ERROR(Prove());
  return bucket()->Delete(key);
}

}  // namespace tacho::storage
