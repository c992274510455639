#include "storage/shard/takeover.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "storage/shard/bucket_keys.h"

namespace tacho::storage {
namespace {

// One look at a number of an older log. No value: nothing was there, and the seal may be by now.
absl::StatusOr<std::optional<LogObject>> ReadOrSeal(const ManifestObject& object,
                                                    const LogPlace& place, uint64_t sealed_by,
                                                    int tries) {
  const std::string key = SegmentKey(place.shard, place.epoch, place.number);
  const absl::StatusOr<StoredObject> there =
      GetUntilAnswered(object.bucket(), key, object.before_retry());
  if (there.ok()) {
    TACHO_ASSIGN_OR_RETURN(LogObject found, DecodeLogObject(there->body, place));
    return found;
  }
  if (!absl::IsNotFound(there.status())) return there.status();
  const Seal seal{.place = place, .sealed_by = sealed_by};
  const absl::StatusOr<std::string> put = object.bucket().PutNew(key, EncodeSeal(seal));
  if (put.ok()) return LogObject(seal);
  // Whatever is there now, or will be, decides. The older owner may have been quicker.
  if (absl::IsAlreadyExists(put.status())) return std::nullopt;
  if (!absl::IsUnavailable(put.status())) return put.status();
  TACHO_RETURN_IF_ERROR(object.before_retry()(tries));
  return std::nullopt;
}

// Returns the number of the seal.
absl::StatusOr<uint64_t> SealLog(const ManifestObject& object, const Manifest& claimed,
                                 const LogStart& log, const SegmentVisitor& visit) {
  int tries = 1;
  for (LogPlace place{claimed.shard, log.epoch, log.first}; place.number <= kMaxKeyNumber;) {
    TACHO_ASSIGN_OR_RETURN(std::optional<LogObject> found,
                           ReadOrSeal(object, place, claimed.epoch, tries++));
    if (!found.has_value()) continue;
    tries = 1;
    if (std::holds_alternative<Seal>(*found)) return place.number;
    TACHO_RETURN_IF_ERROR(visit(std::get<Segment>(*std::move(found))));
    ++place.number;
  }
  return absl::DataLossError(absl::StrCat("the log of epoch ", log.epoch, " in shard ",
                                          claimed.shard,
                                          " has no room for a seal: its manifest is damaged"));
}

}  // namespace

absl::StatusOr<ReadManifest> ClaimShard(const ManifestObject& object, std::optional<uint64_t> epoch,
                                        absl::string_view owner) {
  TACHO_CHECK(!epoch.has_value() || (*epoch > 0 && *epoch <= kMaxKeyNumber));
  for (;;) {
    absl::StatusOr<ReadManifest> old = object.Read();
    if (!old.ok() && !absl::IsNotFound(old.status())) return old;
    Manifest next = old.ok() ? old->manifest : Manifest{.shard = object.shard()};
    const uint64_t mine = epoch.value_or(next.epoch + 1);
    if (next.epoch >= mine) {
      return absl::AbortedError(absl::StrCat("shard ", next.shard, " belongs to ", next.owner,
                                             " since epoch ", next.epoch, "; epoch ", mine,
                                             " comes too late"));
    }
    if (mine > kMaxKeyNumber) return absl::DataLossError("the epochs of this shard are used up");
    next.epoch = mine;
    next.owner = std::string(owner);
    next.logs.push_back({.epoch = mine, .first = 1});
    absl::StatusOr<ReadManifest> written =
        old.ok() ? object.Replace(*old, std::move(next)) : object.Create(std::move(next));
    // Somebody else wrote in between: perhaps an older owner, whose commit this claim must keep.
    if (!absl::IsAborted(written.status())) return written;
  }
}

absl::StatusOr<std::vector<SealedLog>> SealOlderLogs(const ManifestObject& object,
                                                     const Manifest& claimed,
                                                     const SegmentVisitor& visit) {
  std::vector<SealedLog> sealed;
  for (const LogStart& log : claimed.logs) {
    if (log.epoch == claimed.epoch) continue;
    TACHO_ASSIGN_OR_RETURN(const uint64_t seal, SealLog(object, claimed, log, visit));
    sealed.push_back({.epoch = log.epoch, .first = log.first, .seal = seal});
  }
  return sealed;
}

}  // namespace tacho::storage
