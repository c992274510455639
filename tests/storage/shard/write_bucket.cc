// Writes the objects of a small shard as files, for a reader that follows docs/bucket_format.md
// alone.
//
//   write_bucket DIRECTORY   each object becomes the file DIRECTORY/KEY
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "proto/base/check.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest_commit.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/shard_count.h"
#include "storage/shard/shard_log.h"
#include "storage/shard/takeover.h"
#include "tests/support/fake_bucket.h"

namespace tacho::storage {
namespace {

constexpr uint32_t kShardOfFiles = 12;

void AppendStored(ShardLog& log, const std::vector<std::string>& records, uint64_t after) {
  TACHO_CHECK(log.Append(records, after, after + records.size()).ok());
  TACHO_CHECK(log.SendOne() == ShardLog::Sent::kStored);
}

// Two owners: the first one's log is sealed, and partly covered by the second one's commit.
void MakeShard(FakeBucket& bucket) {
  uint64_t nonce = 0x0123456789abcdef;
  const ManifestObject object({.bucket = &bucket,
                               .shard = kShardOfFiles,
                               .random = [&] { return nonce++; },
                               .before_retry = [](int) { return absl::OkStatus(); }});
  TACHO_CHECK(ClaimShard(object, 1, "collector-a").ok());
  ShardLog first({.bucket = &bucket, .shard = kShardOfFiles, .epoch = 1, .nonce = 0xa1});
  AppendStored(first, {"covered"}, 100);
  AppendStored(first, {"row one", std::string("\0\xff", 2), ""}, 101);
  const auto claimed = ClaimShard(object, 3, "collector-b");
  TACHO_CHECK(claimed.ok());
  const auto sealed =
      SealOlderLogs(object, claimed->manifest, [](const Segment&) { return absl::OkStatus(); });
  TACHO_CHECK(sealed.ok());
  ShardLog second({.bucket = &bucket, .shard = kShardOfFiles, .epoch = 3, .nonce = 0xb2});
  AppendStored(second, {std::string(5000, 'z')}, 104);
  const StoredFile list{.key = BlockListKey(kShardOfFiles, 20781, 3, 2), .bytes = 1};
  const Block block{.file = {.key = BlockKey(kShardOfFiles, 20782, 3, 1), .bytes = 7, .crc32c = 9},
                    .first_key = std::string("\0k", 2),
                    .last_key = std::string("\xffk", 2)};
  TACHO_CHECK(bucket.Put(list.key, EncodeBlockList({block})).ok());
  const auto committed = CommitManifest(
      object, second,
      {.replay_from = {1, 2}, .sealed = *sealed, .change = [&](Manifest* manifest) {
         manifest->state = {
             {.file = {.key = StateFileKey(kShardOfFiles, 3, "000007")}, .metadata = "import"}};
         manifest->open_days[20782] = {block};
         manifest->closed_days[20781] = list;
         manifest->positions = "p";
         manifest->kept_from_day = 20700;
         return absl::OkStatus();
       }});
  TACHO_CHECK(committed.ok());
}

int Main(const std::filesystem::path& directory) {
  FakeBucket bucket;
  TACHO_CHECK(CheckShardCount(bucket, 13, [](int) { return absl::OkStatus(); }).ok());
  MakeShard(bucket);
  for (const std::string& key : bucket.contents().Keys()) {
    std::filesystem::create_directories((directory / key).parent_path());
    std::ofstream(directory / key, std::ios::binary) << *bucket.contents().Body(key);
  }
  return 0;
}

}  // namespace
}  // namespace tacho::storage

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_bucket DIRECTORY\n", stderr);
    return 2;
  }
  return tacho::storage::Main(argv[1]);
}
