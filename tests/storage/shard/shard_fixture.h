// A shard in a bucket in memory, and what its tests do with it again and again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "storage/shard/bucket_keys.h"
#include "storage/shard/manifest_commit.h"
#include "storage/shard/manifest_object.h"
#include "storage/shard/segment.h"
#include "storage/shard/shard_log.h"
#include "storage/shard/takeover.h"
#include "tests/support/fake_bucket.h"

namespace tacho::storage {

inline constexpr uint32_t kTestShard = 5;

class ShardFixture : public testing::Test {
 protected:
  using Kind = BucketRequest::Kind;

  ManifestObject Object() {
    return ManifestObject({.bucket = &bucket_,
                           .shard = kTestShard,
                           .random = [this] { return ++random_; },
                           .before_retry =
                               [this](int) {
                                 ++retries_;
                                 return give_up_after_ > 0 && retries_ >= give_up_after_
                                            ? absl::CancelledError("the test gives up")
                                            : absl::OkStatus();
                               }});
  }

  ReadManifest Claim(uint64_t epoch, absl::string_view owner = "me") {
    absl::StatusOr<ReadManifest> claimed = ClaimShard(Object(), epoch, owner);
    EXPECT_TRUE(claimed.ok()) << claimed.status();
    return claimed.ok() ? *std::move(claimed) : ReadManifest{};
  }

  ShardLogOptions LogOptions(uint64_t epoch) {
    return {.bucket = &bucket_, .shard = kTestShard, .epoch = epoch, .nonce = 1000 + epoch};
  }

  // Appends and stores segments of one record each.
  static void AppendStored(ShardLog& log, const std::vector<std::string>& records) {
    for (const std::string& record : records) {
      ASSERT_TRUE(log.Append({record}, 0, 0).ok());
      ASSERT_EQ(log.SendOne(), ShardLog::Sent::kStored);
    }
  }

  // What a new owner replays; its logs are sealed then.
  std::vector<std::string> Replay(const Manifest& claimed) {
    std::vector<std::string> records;
    const auto sealed = SealOlderLogs(Object(), claimed, [&](Segment segment) {
      records.insert(records.end(), segment.records.begin(), segment.records.end());
      return absl::OkStatus();
    });
    EXPECT_TRUE(sealed.ok()) << sealed.status();
    if (sealed.ok()) sealed_ = *sealed;
    return records;
  }

  Manifest Stored() {
    const auto read = Object().Read();
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? read->manifest : Manifest{};
  }

  bool Exists(absl::string_view key) { return bucket_.contents().Body(key).has_value(); }

  // The fault of the first `times` requests of a kind.
  void Fail(Kind kind, BucketFault fault, int times = 1) {
    bucket_.set_faults([kind, fault, times](const BucketRequest& request) mutable {
      return request.kind == kind && times-- > 0 ? fault : BucketFault::kNone;
    });
  }

  FakeBucket bucket_;
  uint64_t random_ = 0;
  int retries_ = 0;
  int give_up_after_ = 0;
  std::vector<SealedLog> sealed_;
};

}  // namespace tacho::storage
