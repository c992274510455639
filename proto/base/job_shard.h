// Which collector of a cluster keeps a job. Agents, importers and collectors must agree.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tacho {

// From 0 to shards - 1: the first 8 bytes of SHA-256(job), as a big-endian number, modulo `shards`.
// 0 if there is one shard or none.
uint32_t ShardOfJob(absl::string_view job, uint32_t shards);

}  // namespace tacho
