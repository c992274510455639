// The keys of a shard's objects in a bucket. They are built and read here only.
//
//   v1/cluster                              how many shards there are              created once
//   v1/owners                               where the owner of each shard is       replaced
//   v1/members/ADDRESS                      a collector's sign of life             replaced
//   v1/shards/SSSS/manifest                 what is valid, and since which epoch   replaced
//   v1/shards/SSSS/log/EEEE/NNNN            a segment, or the seal of the log      created once
//   v1/shards/SSSS/state/EEEE-FILE.sst      files of exported column families      unique
//   v1/shards/SSSS/days/DDDDD/EEEE-NNNN.sst blocks of columns                      unique
//   v1/shards/SSSS/days/DDDDD/EEEE-NNNN.list the blocks of a closed day            unique
//   v1/shards/SSSS/saved/DDDDD              a day's copy of the manifest           replaced
//
// SSSS has four decimal digits. The epoch EEEE and the number NNNN have sixteen. The day DDDDD
// counts from 1 January 1970 UTC. It has at least five digits, and a minus before them if it is
// before that date. A bucket puts the path of its own URL before these keys.
//
// The epoch in a name is the one of the owner that wrote the object. Two owners therefore never
// choose one name, and a name tells when its object can no longer come into a manifest.
//
// Format: docs/bucket_format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::storage {

// Epochs and numbers of objects stay below this, so that sixteen digits hold them.
inline constexpr uint64_t kMaxKeyNumber = 9'999'999'999'999'999;
inline constexpr uint32_t kMaxShard = 9'999;
// Days of the times that a row can have: nanoseconds in an int64.
inline constexpr int64_t kMaxKeyDay = 106'752;

// Of storage/shard/shard_count.h. It belongs to no shard: ParseObjectKey() does not know it.
inline constexpr char kClusterKey[] = "v1/cluster";
// Clusters with spares have these (storage/shard/owner_map.h, heartbeat.h).
inline constexpr char kOwnersKey[] = "v1/owners";
inline constexpr char kMembersPrefix[] = "v1/members/";

// Each function checks that its arguments are within the bounds above.
std::string ManifestKey(uint32_t shard);
std::string SavedManifestKey(uint32_t shard, int64_t day);
std::string SegmentKey(uint32_t shard, uint64_t epoch, uint64_t number);
// `file`: letters, digits, '.', '_' and '-', at least one, and unique within the epoch.
std::string StateFileKey(uint32_t shard, uint64_t epoch, absl::string_view file);
std::string BlockKey(uint32_t shard, int64_t day, uint64_t epoch, uint64_t number);
std::string BlockListKey(uint32_t shard, int64_t day, uint64_t epoch, uint64_t number);

// What all keys of a shard begin with, for List(); and those of one kind.
std::string ShardPrefix(uint32_t shard);
std::string LogPrefix(uint32_t shard);
std::string StatePrefix(uint32_t shard);
std::string DaysPrefix(uint32_t shard);
std::string SavedPrefix(uint32_t shard);

enum class ObjectKind { kManifest, kSavedManifest, kSegment, kStateFile, kBlock, kBlockList };

struct ObjectName {
  ObjectKind kind = ObjectKind::kManifest;
  uint32_t shard = 0;
  uint64_t epoch = 0;   // Of segments, state files, blocks and lists.
  uint64_t number = 0;  // Of segments, blocks and lists.
  int64_t day = 0;      // Of blocks, lists and saved manifests.
  std::string file;     // Of state files, without the epoch and without ".sst".

  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};

// Reads a key that may be anything. No value: it is not exactly what a function above builds.
std::optional<ObjectName> ParseObjectKey(absl::string_view key);

}  // namespace tacho::storage
