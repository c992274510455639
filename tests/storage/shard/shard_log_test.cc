#include "storage/shard/shard_log.h"

#include <string>
#include <thread>
#include <vector>

#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

using Sent = ShardLog::Sent;

class ShardLogTest : public ShardFixture {
 protected:
  ShardLogTest() : log_(LogOptions(1)) {}

  void Append(const std::string& record) { ASSERT_TRUE(log_.Append({record}, 0, 0).ok()); }
  std::string Key(uint64_t number) { return SegmentKey(kTestShard, 1, number); }

  ShardLog log_;
};

TEST_F(ShardLogTest, AppendsUnderRisingNumbersAndSaysWhatIsStored) {
  EXPECT_EQ(log_.SendOne(), Sent::kNothing);
  Append("a");
  Append("b");
  EXPECT_EQ(log_.stored(), 0u);
  EXPECT_GT(log_.unstored_bytes(), 0u);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
  EXPECT_EQ(log_.stored(), 1u);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
  EXPECT_EQ(log_.stored(), 2u);
  EXPECT_EQ(log_.unstored_bytes(), 0u);
  const auto second = DecodeLogObject(*bucket_.contents().Body(Key(2)), {kTestShard, 1, 2});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(std::get<Segment>(*second).records, std::vector<std::string>{"b"});
}

TEST_F(ShardLogTest, ASegmentBehindAHoleIsNotStoredYet) {
  Append("a");
  Append("b");
  // While the first is asked for, the second one arrives.
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.key == Key(1)) {
      bucket_.set_faults(nullptr);
      EXPECT_EQ(log_.SendOne(), Sent::kStored);
      EXPECT_EQ(log_.stored(), 0u) << "segment 1 is not there";
      return BucketFault::kRefused;
    }
    return BucketFault::kNone;
  });
  EXPECT_EQ(log_.SendOne(), Sent::kUnknown);
  EXPECT_EQ(log_.stored(), 0u);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
  EXPECT_EQ(log_.stored(), 2u);
}

TEST_F(ShardLogTest, TheWindowBoundsWhatIsUnderWay) {
  for (int i = 0; i < 4; ++i) Append("x");
  EXPECT_EQ(log_.Append({"y"}, 0, 0).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
  Append("y");
}

TEST_F(ShardLogTest, ALostAnswerIsFoundToBeOfTheOwnSegment) {
  Append("a");
  Fail(Kind::kPutNew, BucketFault::kAnswerLost);
  EXPECT_EQ(log_.SendOne(), Sent::kUnknown);
  EXPECT_EQ(log_.last_error().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(log_.stored(), 0u);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
  EXPECT_EQ(log_.stored(), 1u);
  EXPECT_TRUE(log_.last_error().ok());
}

TEST_F(ShardLogTest, ARequestThatIsSentTwiceOnTheWayIsStored) {
  Append("a");
  Fail(Kind::kPutNew, BucketFault::kTwice);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
}

TEST_F(ShardLogTest, ASealFencesAndNothingMoreIsStored) {
  Append("a");
  ASSERT_EQ(log_.SendOne(), Sent::kStored);
  Append("b");
  Append("c");
  ASSERT_TRUE(bucket_.PutNew(Key(2), EncodeSeal({.place = {kTestShard, 1, 2}})).ok());
  EXPECT_EQ(log_.SendOne(), Sent::kFenced);
  EXPECT_TRUE(log_.fenced());
  EXPECT_EQ(log_.SendOne(), Sent::kFenced);
  EXPECT_FALSE(Exists(Key(3)));
  EXPECT_EQ(log_.stored(), 1u);
  EXPECT_EQ(log_.Append({"d"}, 0, 0).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(log_.AwaitStoredAbove(1).status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(log_.AwaitWork());
}

TEST_F(ShardLogTest, TheSegmentOfAnotherLifeFences) {
  ShardLogOptions other = LogOptions(1);
  other.nonce = 7;
  ShardLog other_log(other);
  AppendStored(other_log, {"a"});
  Append("a");
  EXPECT_EQ(log_.SendOne(), Sent::kFenced) << "equal records under another nonce";
}

TEST_F(ShardLogTest, AnswersAfterTheFenceDoNotCount) {
  Append("a");
  bucket_.set_faults([&](const BucketRequest&) {
    log_.Fence();
    return BucketFault::kNone;
  });
  EXPECT_EQ(log_.SendOne(), Sent::kFenced);
  EXPECT_EQ(log_.stored(), 0u);
}

TEST_F(ShardLogTest, AForbiddenRequestIsReportedAndTriedAgain) {
  Append("a");
  Fail(Kind::kPutNew, BucketFault::kForbidden);
  EXPECT_EQ(log_.SendOne(), Sent::kUnknown);
  EXPECT_EQ(log_.last_error().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(log_.SendOne(), Sent::kStored);
}

TEST_F(ShardLogTest, RecordsLargerThanASegmentAreRefused) {
  const std::string half(kMaxSegmentPayload / 2, 'x');
  EXPECT_EQ(log_.Append({half, half}, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(log_.SendOne(), Sent::kNothing);
}

TEST_F(ShardLogTest, ManyThreadsStoreEverythingInOrder) {
  constexpr uint64_t kSegments = 400;
  int fault = 0;
  absl::Mutex mutex;
  bucket_.set_faults([&](const BucketRequest&) {
    const absl::MutexLock lock(&mutex);
    return ++fault % 5 == 0 ? BucketFault::kAnswerLost : BucketFault::kNone;
  });
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([&] {
      while (log_.AwaitWork()) log_.SendOne();
    });
  }
  for (uint64_t number = 1; number <= kSegments; ++number) {
    for (;;) {
      const uint64_t before = log_.stored();
      if (log_.Append({std::to_string(number)}, number - 1, number).ok()) break;
      ASSERT_TRUE(log_.AwaitStoredAbove(before).ok());
    }
  }
  uint64_t stored = 0;
  while (stored < kSegments) {
    const auto now = log_.AwaitStoredAbove(stored);
    ASSERT_TRUE(now.ok()) << now.status();
    stored = *now;
    EXPECT_TRUE(Exists(Key(stored)));
  }
  log_.Close();
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(log_.AwaitStoredAbove(stored).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tacho::storage
