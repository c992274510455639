#include "storage/shard/segment_senders.h"

#include <atomic>
#include <memory>
#include <string>

#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

class SegmentSendersTest : public ShardFixture {
 protected:
  SegmentSendersTest() : log_(LogOptions(1)) {}

  std::unique_ptr<SegmentSenders> Start() {
    return std::make_unique<SegmentSenders>(
        &log_, SegmentSenders::Options{.first_pause = absl::Milliseconds(1),
                                       .longest_pause = absl::Milliseconds(2),
                                       .on_progress = [this] { ++progress_; }});
  }
  void Append(const std::string& record) { ASSERT_TRUE(log_.Append({record}, 0, 0).ok()); }

  ShardLog log_;
  std::atomic<int> progress_ = 0;
};

TEST_F(SegmentSendersTest, SendUntilItIsStored) {
  Fail(Kind::kPutNew, BucketFault::kRefused, 7);
  const auto senders = Start();
  for (int i = 0; i < 4; ++i) Append("x");
  EXPECT_EQ(*log_.AwaitStoredAbove(3), 4u);
  senders->Stop();
  EXPECT_EQ(progress_, 4);
}

TEST_F(SegmentSendersTest, EndWhereTheBucketNeverAnswers) {
  bucket_.set_faults([](const BucketRequest&) { return BucketFault::kRefused; });
  const auto senders = Start();
  Append("x");
  while (bucket_.requests() < 3) absl::SleepFor(absl::Milliseconds(1));
  senders->Stop();
  senders->Stop();
  EXPECT_EQ(log_.stored(), 0u);
  EXPECT_EQ(log_.AwaitStoredAbove(0).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(SegmentSendersTest, EndWhenTheOwnerIsFenced) {
  ASSERT_TRUE(bucket_
                  .PutNew(SegmentKey(kTestShard, 1, 1),
                          EncodeSeal({.place = {kTestShard, 1, 1}, .sealed_by = 2}))
                  .ok());
  const auto senders = Start();
  Append("x");
  EXPECT_EQ(log_.AwaitStoredAbove(0).status().code(), absl::StatusCode::kAborted);
  senders->Stop();
  EXPECT_EQ(progress_, 1);
}

}  // namespace
}  // namespace tacho::storage
