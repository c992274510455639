// The manifest of a shard: what in the bucket is valid. All else there is garbage, or on its way.
// One object holds it, and an owner replaces that object only while it is the version that the
// owner has read. Which owner may do so is the epoch's question: see takeover.h.
//
// The text is JSON in UTF-8, so that people and other programs can read it. Bytes that may be
// anything are in base64.
//
// Format: docs/bucket_format.md, "The manifest".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::storage {

inline constexpr uint64_t kManifestFormat = 1;
// A manifest of 50,000 blocks in open days has about half of this.
inline constexpr size_t kMaxManifestBytes = size_t{16} << 20;

// Where the replay of a log begins. Its segments have the numbers `first`, `first` + 1 and so on,
// until the seal or, in the owner's own log, until the last one that exists.
struct LogStart {
  uint64_t epoch = 0;  // From 1.
  uint64_t first = 0;  // From 1.

  friend bool operator==(const LogStart&, const LogStart&) = default;
};

// An object that never changes.
struct StoredFile {
  std::string key;  // The whole key: shards that were one before may share files.
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  friend bool operator==(const StoredFile&, const StoredFile&) = default;
};

// A file of an exported column family.
struct StateFile {
  StoredFile file;
  std::string metadata;  // What the import needs to know. Any bytes.

  friend bool operator==(const StateFile&, const StateFile&) = default;
};

// Columns of one day, in the order of their keys.
struct Block {
  StoredFile file;
  std::string first_key;  // Any bytes.
  std::string last_key;   // Any bytes; not before `first_key`.

  friend bool operator==(const Block&, const Block&) = default;
};

struct Manifest {
  uint32_t shard = 0;
  uint64_t epoch = 0;    // Of the owner that last became owner; 0: there was none yet.
  std::string owner;     // The name of that member, for people. UTF-8.
  uint64_t version = 0;  // Each replacement adds 1.
  uint64_t nonce = 0;    // Random for each write: shows whose write is there.
  // In the order of replay, which is the order of their epochs. The last is the owner's own.
  std::vector<LogStart> logs;
  std::vector<StateFile> state;
  // Days from 1 January 1970 UTC. A day is in one of the two at most, and a block only in its own.
  std::map<int64_t, std::vector<Block>> open_days;
  std::map<int64_t, StoredFile> closed_days;  // Each is a list of blocks: DecodeBlockList().
  std::string positions;                      // What the state says of positions. Any bytes.
  std::optional<int64_t> kept_from_day;       // Retention has removed all days before.

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string EncodeManifest(const Manifest& manifest);

// Reads bytes that may be anything. The message says what is wrong and where.
//   UNIMPLEMENTED  a newer version of the program has written it, in another format. Do not write
//                  over it.
//   DATA_LOSS      it is no manifest, or a damaged one.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes);

// The blocks of a closed day, in an object of their own. Errors as above.
std::string EncodeBlockList(const std::vector<Block>& blocks);
absl::StatusOr<std::vector<Block>> DecodeBlockList(absl::string_view bytes);

}  // namespace tacho::storage
