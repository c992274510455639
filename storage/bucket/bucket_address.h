// The URLs of a bucket's objects and listings.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket_options.h"

namespace tacho::storage {

enum class BucketDialect {
  kS3,   // AWS, Ceph and most others.
  kGcs,  // Google's XML API, whose conditions are headers of its own.
};

struct BucketAddress {
  BucketDialect dialect = BucketDialect::kS3;
  std::string root;    // The bucket's URL, without a slash at its end.
  std::string bucket;  // Its name.
  std::string prefix;  // Empty, or ends with a slash.
  std::string region;

  // The text that errors name an object by: s3://BUCKET/PREFIX/KEY.
  std::string NameOf(absl::string_view key) const;
  std::string ObjectUrl(absl::string_view key) const;
  // `prefix` is one of keys, so that this->prefix comes before it; `from` is empty, or the token
  // that the service gave. Parameters are in the order that signing wants.
  std::string ListUrl(absl::string_view key_prefix, absl::string_view from) const;
};

//   INVALID_ARGUMENT  as OpenBucket().
absl::StatusOr<BucketAddress> ParseBucketAddress(const BucketOptions& options);

// Whether `key`, behind `prefix`, is one that bucket.h allows. A prefix of keys may be empty or end
// anywhere.
//   INVALID_ARGUMENT
absl::Status CheckKey(absl::string_view key);
absl::Status CheckKeyPrefix(absl::string_view prefix);

// Everything but A–Z a–z 0–9 - . _ ~ as %XX, as a query wants it.
std::string EscapeQuery(absl::string_view text);

}  // namespace tacho::storage
