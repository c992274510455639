// The manifest as an object in the bucket: created once, then replaced by whoever read the version
// that is there. An answer may get lost, or come twice, or say that the request failed although it
// was done. The nonce in the text tells whose write is there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/bucket/bucket.h"
#include "storage/shard/manifest.h"
#include "storage/shard/retry.h"

namespace tacho::storage {

// What was in the bucket at some moment.
struct ReadManifest {
  Manifest manifest;
  std::string tag;  // The version, for the bucket.
};

// Thread-safe, as far as `random` and `before_retry` are. Holds no lock.
class ManifestObject {
 public:
  struct Options {
    Bucket* bucket = nullptr;  // Not owned; must outlive this.
    uint32_t shard = 0;
    // Numbers that no process ever has twice; all 64 bits are random.
    std::function<uint64_t()> random;
    BeforeRetry before_retry;
  };
  explicit ManifestObject(Options options);

  // Besides the bucket's errors:
  //   NOT_FOUND      there is none yet.
  //   UNIMPLEMENTED  a newer version of the program has written it: upgrade this one.
  //   DATA_LOSS      it is damaged, or of another shard. The message names the key.
  absl::StatusOr<ReadManifest> Read() const;
  // For operators' commands, which expect one: the message of NOT_FOUND says where to look.
  absl::StatusOr<ReadManifest> ReadExisting() const;

  // Both write `next` with a new nonce, and with a version that is one above the one before. They
  // return what they wrote once it is known to be there.
  //   ABORTED             somebody else has created or replaced it meanwhile. Read() it, and decide
  //                       again. (This write may have been there for a while: all that can be said
  //                       is that it is not there now.)
  //   RESOURCE_EXHAUSTED  the text is larger than kMaxManifestBytes. Nothing was sent.
  //   others              of the bucket, or of `before_retry`. The write may have happened, or may
  //                       still happen while the manifest is the version `old`.
  absl::StatusOr<ReadManifest> Create(Manifest next) const;
  absl::StatusOr<ReadManifest> Replace(const ReadManifest& old, Manifest next) const;

  uint32_t shard() const { return options_.shard; }
  Bucket& bucket() const { return *options_.bucket; }
  const BeforeRetry& before_retry() const { return options_.before_retry; }

 private:
  absl::StatusOr<ReadManifest> Write(const ReadManifest* old, Manifest next) const;

  const Options options_;
  const std::string key_;
};

}  // namespace tacho::storage
