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

}  // namespace
}  // namespace tacho
