// Which collector of a cluster keeps what. Agents, importers and collectors must agree.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho {

// From 0 to shards - 1: the first 8 bytes of SHA-256(job), as a big-endian number, modulo `shards`.
// 0 if there is one shard or none.
uint32_t ShardOfJob(absl::string_view job, uint32_t shards);

// The same of a split job, whose rows and events are divided by their hosts: the first 8 bytes of
// SHA-256(job, a zero byte, host).
uint32_t ShardOfHost(absl::string_view job, absl::string_view host, uint32_t shards);

// How the jobs of a cluster are divided.
struct JobDivision {
  uint32_t shards = 1;
  std::set<std::string, std::less<>> split_jobs;

  bool IsSplit(absl::string_view job) const { return shards > 1 && split_jobs.contains(job); }
  // The shard of the job itself. If the job is split, it has only what belongs to no host, such as
  // attributes.
  uint32_t ShardOf(absl::string_view job) const { return ShardOfJob(job, shards); }
  // The shard of what the job has from this host. An empty host stands for the job itself.
  uint32_t ShardOf(absl::string_view job, absl::string_view host) const {
    return IsSplit(job) && !host.empty() ? ShardOfHost(job, host, shards) : ShardOf(job);
  }
};

}  // namespace tacho
