#include "proto/base/job_shard.h"

#include "gtest/gtest.h"

namespace tacho {
namespace {

// Computed with Python: int.from_bytes(hashlib.sha256(job).digest()[:8], "big") % shards.
TEST(JobShardTest, IsWhatOtherProgramsCompute) {
  EXPECT_EQ(ShardOfJob("", 1000), 652u);
  EXPECT_EQ(ShardOfJob("run", 2), 1u);
  EXPECT_EQ(ShardOfJob("run", 1000), 323u);
  EXPECT_EQ(ShardOfJob("llama-70b", 8), 2u);
  EXPECT_EQ(ShardOfJob("llama-70b", 1000), 114u);
  EXPECT_EQ(ShardOfJob("hosts", 3), 2u);
}

TEST(JobShardTest, OneShardHasEverything) {
  EXPECT_EQ(ShardOfJob("run", 0), 0u);
  EXPECT_EQ(ShardOfJob("run", 1), 0u);
}

// int.from_bytes(hashlib.sha256(job + b"\0" + host).digest()[:8], "big") % shards.
TEST(JobShardTest, HostsOfASplitJobAreDividedAsOtherProgramsCompute) {
  EXPECT_EQ(ShardOfHost("hosts", "host-3", 1000), 360u);
  EXPECT_EQ(ShardOfHost("hosts", "", 1000), 436u);
  EXPECT_EQ(ShardOfHost("hosts", "d", 3), 2u);
}

TEST(JobShardTest, OnlySplitJobsAreDividedByHosts) {
  const JobDivision division = {.shards = 1000, .split_jobs = {"hosts"}};
  EXPECT_EQ(division.ShardOf("hosts", "host-3"), 360u);
  EXPECT_EQ(division.ShardOf("hosts"), ShardOfJob("hosts", 1000));
  EXPECT_EQ(division.ShardOf("hosts", ""), ShardOfJob("hosts", 1000));
  EXPECT_EQ(division.ShardOf("run", "host-3"), ShardOfJob("run", 1000));
  const JobDivision alone = {.shards = 1, .split_jobs = {"hosts"}};
  EXPECT_FALSE(alone.IsSplit("hosts"));
  EXPECT_EQ(alone.ShardOf("hosts", "host-3"), 0u);
}

}  // namespace
}  // namespace tacho
