#include "storage/shard/log_reader.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/storage/shard/shard_fixture.h"

namespace tacho::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class LogReaderTest : public ShardFixture {
 protected:
  static std::string Key(uint64_t epoch, uint64_t number) {
    return SegmentKey(kTestShard, epoch, number);
  }
  absl::StatusOr<std::vector<LogExtent>> Read(const Manifest& manifest,
                                              const LogFault& fault = nullptr) {
    records_.clear();
    return ReadLogs(
        Object(), manifest,
        [&](const Segment& segment) {
          records_.insert(records_.end(), segment.records.begin(), segment.records.end());
          return absl::OkStatus();
        },
        fault);
  }

  std::vector<std::string> records_;
};

TEST_F(LogReaderTest, ReadsAllLogsInOrderAndChangesNothing) {
  const ReadManifest first = Claim(1);
  ShardLog one(LogOptions(1));
  AppendStored(one, {"a", "b"});
  const ReadManifest second = Claim(2);
  Replay(second.manifest);
  ShardLog two(LogOptions(2));
  AppendStored(two, {"c"});
  const std::vector<std::string> before = bucket_.contents().Keys();
  const auto logs = Read(second.manifest);
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_THAT(records_, ElementsAre("a", "b", "c"));
  ASSERT_THAT(*logs, SizeIs(2));
  EXPECT_TRUE((*logs)[0].sealed);
  EXPECT_EQ((*logs)[0].end, 3u);
  EXPECT_FALSE((*logs)[1].sealed);
  EXPECT_EQ((*logs)[1].end, 2u);
  EXPECT_EQ(bucket_.contents().Keys(), before);
  // A manifest from before the takeover ends at the seal.
  const auto old = Read(first.manifest);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(records_, ElementsAre("a", "b"));
  EXPECT_TRUE(old->back().sealed);
}

TEST_F(LogReaderTest, LogWithoutASealIsTheLastOneThatIsRead) {
  Claim(1);
  ShardLog one(LogOptions(1));
  AppendStored(one, {"a"});
  const ReadManifest claimed = Claim(2);
  const auto logs = Read(claimed.manifest);
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_THAT(*logs, SizeIs(1));
  EXPECT_THAT(records_, ElementsAre("a"));
}

// The new owner seals and writes between two requests of the reader: the seal was not there, and
// what follows it is.
TEST_F(LogReaderTest, SealThatComesBetweenTwoLooksIsNoHole) {
  Claim(1);
  ShardLog one(LogOptions(1));
  AppendStored(one, {"a"});
  const ReadManifest claimed = Claim(2);
  ShardLog two(LogOptions(2));
  bool done = false;
  bucket_.set_faults([&](const BucketRequest& request) {
    if (request.kind == Kind::kGet && request.key == Key(2, 1) && !done) {
      done = true;
      Replay(claimed.manifest);
      AppendStored(two, {"b"});
    }
    return BucketFault::kNone;
  });
  const auto logs = Read(claimed.manifest);
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_TRUE(done);
  EXPECT_THAT(records_, ElementsAre("a", "b"));
  EXPECT_THAT(*logs, SizeIs(2));
}

TEST_F(LogReaderTest, TrimmedLogIsReadAgainFromTheNewManifest) {
  const ReadManifest claimed = Claim(1);
  ShardLog log(LogOptions(1));
  AppendStored(log, {"a", "b", "c"});
  const auto committed = CommitManifest(
      Object(), log, {.replay_from = {1, 3}, .stored_through = 3, .change = [](Manifest*) {
                        return absl::OkStatus();
                      }});
  ASSERT_TRUE(committed.ok()) << committed.status();
  // What is not deleted yet is read.
  ASSERT_TRUE(Read(claimed.manifest).ok());
  EXPECT_THAT(records_, ElementsAre("a", "b", "c"));
  ASSERT_TRUE(bucket_.Delete(Key(1, 1)).ok());
  ASSERT_TRUE(bucket_.Delete(Key(1, 2)).ok());
  const auto logs = Read(claimed.manifest);
  EXPECT_TRUE(absl::IsAborted(logs.status())) << logs.status();
  ASSERT_TRUE(Read(committed->written.manifest).ok());
  EXPECT_THAT(records_, ElementsAre("c"));
}

TEST_F(LogReaderTest, SegmentsThatDoNotFollowEachOtherAreAFault) {
  const ReadManifest claimed = Claim(1);
  ShardLog log(LogOptions(1));
  ASSERT_TRUE(log.Append({"a"}, 10, 12).ok());
  ASSERT_EQ(log.SendOne(), ShardLog::Sent::kStored);
  ASSERT_TRUE(log.Append({"b"}, 13, 14).ok());
  ASSERT_EQ(log.SendOne(), ShardLog::Sent::kStored);
  const auto logs = Read(claimed.manifest);
  EXPECT_TRUE(absl::IsDataLoss(logs.status())) << logs.status();
  EXPECT_THAT(std::string(logs.status().message()), HasSubstr(Key(1, 2)));
}

TEST_F(LogReaderTest, EachFaultIsToldAndTheReadingGoesOn) {
  const ReadManifest claimed = Claim(1);
  ShardLog log(LogOptions(1));
  AppendStored(log, {"a", "b", "c", "d", "e", "f", "g", "h"});
  ASSERT_TRUE(bucket_.Delete(Key(1, 2)).ok());
  ASSERT_TRUE(bucket_.Put(Key(1, 4), "neither segment nor seal").ok());
  std::vector<std::string> faults;
  const auto logs = Read(claimed.manifest, [&](absl::string_view key, const absl::Status& what) {
    EXPECT_TRUE(absl::IsDataLoss(what)) << what;
    faults.emplace_back(key);
    return absl::OkStatus();
  });
  ASSERT_TRUE(logs.ok()) << logs.status();
  EXPECT_THAT(faults, ElementsAre(Key(1, 2), Key(1, 4)));
  EXPECT_THAT(records_, ElementsAre("a", "c", "e", "f", "g", "h"));
}

}  // namespace
}  // namespace tacho::storage
