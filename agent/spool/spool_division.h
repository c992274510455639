// Where the spools of an agent lie. Without a cluster there is one, whose files lie in spool.path
// itself. With one there is a spool for each shard, in a directory of its own below that: so what
// was spooled with another number of members, or without any, is found at the next start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::agent {

struct FoundSpool {
  std::string path;
  uint32_t shard = 0;
  uint32_t shards = 0;  // 0: of no cluster.
};

// spool.path and "shard-1-of-3".
std::string ShardPath(absl::string_view path, uint32_t shard, uint32_t shards);

// The spools below `path`, which may be missing, the one of no cluster first, then by their names.
std::vector<FoundSpool> FindSpools(const std::string& path);

}  // namespace tacho::agent
