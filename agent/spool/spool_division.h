// Where the spools of an agent lie. Without a cluster there is one, whose files lie in spool.path
// itself. With one there is a spool for each shard, in a directory of its own below that: so what
// was spooled with another number of members, other split jobs, or without a cluster, is found at
// the next start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/job_shard.h"

namespace tacho::agent {

struct FoundSpool {
  std::string path;
  uint32_t shard = 0;
  uint32_t shards = 0;  // 0: of no cluster.
  std::string split;    // SplitName() of its division.
};

// Empty without split jobs; else "-split-" and 8 digits that stand for their names.
std::string SplitName(const JobDivision& division);
// spool.path and "shard-1-of-3", and SplitName().
std::string ShardPath(absl::string_view path, uint32_t shard, const JobDivision& division);

// The spools below `path`, which may be missing, the one of no cluster first, then by their names.
std::vector<FoundSpool> FindSpools(const std::string& path);

}  // namespace tacho::agent
