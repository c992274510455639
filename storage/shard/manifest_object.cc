#include "storage/shard/manifest_object.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

// Whether the outcome of a conditional write has to be looked up. A refusal may be of the second of
// two requests that are ours.
bool MustLook(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsAlreadyExists(status);
}

}  // namespace

ManifestObject::ManifestObject(Options options)
    : options_(std::move(options)), key_(ManifestKey(options_.shard)) {
  TACHO_CHECK(options_.bucket != nullptr && options_.random && options_.before_retry);
}

absl::StatusOr<ReadManifest> ManifestObject::Read() const {
  TACHO_ASSIGN_OR_RETURN(StoredObject object,
                         GetUntilAnswered(*options_.bucket, key_, options_.before_retry));
  absl::StatusOr<Manifest> manifest = DecodeManifest(object.body);
  if (!manifest.ok()) {
    return absl::Status(manifest.status().code(),
                        absl::StrCat(key_, ": ", manifest.status().message()));
  }
  if (manifest->shard != options_.shard) {
    return absl::DataLossError(
        absl::StrCat(key_, " is the manifest of shard ", manifest->shard,
                     ". Somebody has copied it there: restore the right one."));
  }
  return ReadManifest{*std::move(manifest), std::move(object.tag)};
}

absl::StatusOr<ReadManifest> ManifestObject::ReadExisting() const {
  auto read = Read();
  if (!absl::IsNotFound(read.status())) return read;
  return absl::NotFoundError(
      absl::StrCat("there is no ", key_,
                   " in this bucket: look whether bucket.url names the place "
                   "of a collector, with its prefix"));
}

absl::StatusOr<ReadManifest> ManifestObject::Create(Manifest next) const {
  return Write(nullptr, std::move(next));
}

absl::StatusOr<ReadManifest> ManifestObject::Replace(const ReadManifest& old, Manifest next) const {
  return Write(&old, std::move(next));
}

absl::StatusOr<ReadManifest> ManifestObject::Write(const ReadManifest* old, Manifest next) const {
  TACHO_CHECK(next.shard == options_.shard);
  next.version = old != nullptr ? old->manifest.version + 1 : 1;
  next.nonce = options_.random();
  const std::string body = EncodeManifest(next);
  if (body.size() > kMaxManifestBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(key_, " would have ", body.size(), " bytes; at most ", kMaxManifestBytes,
                     " are allowed. Close days, so that fewer blocks are listed in it."));
  }
  std::string tag = old != nullptr ? old->tag : "";
  for (int tries = 1;; ++tries) {
    absl::StatusOr<std::string> put = old != nullptr ? options_.bucket->PutIf(key_, tag, body)
                                                     : options_.bucket->PutNew(key_, body);
    if (put.ok()) return ReadManifest{std::move(next), *std::move(put)};
    if (!MustLook(put.status())) return put.status();
    absl::StatusOr<ReadManifest> now = Read();
    if (now.ok() && now->manifest.nonce == next.nonce) return now;
    const bool unchanged = old != nullptr ? now.ok() && now->manifest.nonce == old->manifest.nonce
                                          : absl::IsNotFound(now.status());
    if (!unchanged) {
      if (!now.ok()) return now;
      return absl::AbortedError(absl::StrCat(key_, " was replaced by ", now->manifest.owner,
                                             " in epoch ", now->manifest.epoch));
    }
    // The same bytes again, under the same condition: at most one of the requests can succeed.
    if (now.ok()) tag = std::move(now->tag);
    TACHO_RETURN_IF_ERROR(options_.before_retry(tries));
  }
}

}  // namespace tacho::storage
