// Where the owner of each shard is to be found, in a cluster with spare collectors: the object
// `v1/owners`. Whoever wants to own a shard writes its address there first, under a condition, so
// that of several spares one goes on. The map keeps no two owners apart: manifests do that
// (takeover.h). A wrong map costs time and loses nothing.
//
// Format: docs/bucket_format.md, "The owners".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"

namespace tacho::storage {

struct OwnerMap {
  uint64_t version = 0;  // Each replacement adds 1.
  uint64_t nonce = 0;    // Random for each write: shows whose write is there.
  // HOST:PORT by shard. Empty: the last owner has ended in good order, and anybody may go on. A
  // shard that is not in it has had no owner yet.
  std::map<uint32_t, std::string> owners;

  friend bool operator==(const OwnerMap&, const OwnerMap&) = default;
};

std::string EncodeOwnerMap(const OwnerMap& map);
// Reads bytes that may be anything.
//   UNIMPLEMENTED  a newer version of the program has written it.
//   DATA_LOSS      it is no map, or a damaged one.
absl::StatusOr<OwnerMap> DecodeOwnerMap(absl::string_view bytes);

// The object. For one thread.
class OwnerMapObject {
 public:
  // The bucket is not owned. `random` gives nonces.
  OwnerMapObject(Bucket* bucket, std::function<uint64_t()> random)
      : bucket_(bucket), random_(std::move(random)) {}

  // The map as it is now. An object that is not there is an empty map.
  //   others  as DecodeOwnerMap(), or of the bucket.
  absl::Status Read();
  // As the last Read() or Change() has left it.
  const OwnerMap& map() const { return map_; }

  // Makes `to` the owner of the shard if the owner is `from` now: an address, or "" for a shard
  // that has none, released or new. Reads the map.
  //   ABORTED  somebody else was faster: map() has the owner.
  //   others   as Read(). Whether it has happened is known after the next Read().
  absl::Status Change(uint32_t shard, absl::string_view from, absl::string_view to);

 private:
  Bucket* const bucket_;
  const std::function<uint64_t()> random_;
  OwnerMap map_;
  std::string tag_;  // Belongs to map_; empty: there is no object.
};

}  // namespace tacho::storage
