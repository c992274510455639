#include "server/takeover/ownership.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/shard/bucket_keys.h"
#include "tests/support/fake_bucket.h"

namespace tacho::server::takeover {
namespace {

using testing::ElementsAre;
using testing::Optional;

constexpr uint32_t kShards = 2;

class OwnershipTest : public testing::Test {
 protected:
  // A collector of a cluster with the members a:1 and b:1 and the spares c:1 and d:1.
  struct Process {
    int changes = 0;
    std::unique_ptr<Ownership> ownership;
  };

  std::unique_ptr<Process> Run(const std::string& address) {
    auto process = std::make_unique<Process>();
    OwnershipOptions options;
    options.bucket = &bucket_;
    options.address = address;
    if (address == "a:1") options.home = 0;
    if (address == "b:1") options.home = 1;
    options.members = {"a:1", "b:1", "c:1", "d:1"};
    options.shards = kShards;
    options.on_change = [made = process.get()] { ++made->changes; };
    options.monotonic = [this] { return now_; };
    options.random = [this] { return ++random_; };
    process->ownership = std::make_unique<Ownership>(std::move(options));
    process->ownership->Seek();
    return process;
  }

  void Pass(const std::vector<Process*>& living, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ += absl::Seconds(1);
      for (Process* const process : living) process->ownership->Look();
    }
  }

  static std::optional<uint32_t> ShardOf(const std::unique_ptr<Process>& process) {
    return process->ownership->shard();
  }

  absl::Time now_ = absl::UnixEpoch();
  uint64_t random_ = 0;
  storage::FakeBucket bucket_;
};

TEST_F(OwnershipTest, MembersTakeTheirOwnAndSparesWait) {
  const auto c = Run("c:1");
  Pass({c.get()}, 5);
  EXPECT_EQ(ShardOf(c), std::nullopt);
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  Pass({a.get(), b.get(), c.get()}, 100);
  EXPECT_THAT(ShardOf(a), Optional(0));
  EXPECT_THAT(ShardOf(b), Optional(1));
  EXPECT_EQ(ShardOf(c), std::nullopt);
  EXPECT_EQ(c->ownership->OwnerOf(1), "b:1");
  EXPECT_THAT(a->ownership->standbys(), ElementsAre("c:1"));
  EXPECT_EQ(a->ownership->takeovers(), 0u);
}

TEST_F(OwnershipTest, ASpareTakesTheShardOfALostOwner) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  const auto c = Run("c:1");
  const auto d = Run("d:1");
  Pass({a.get(), b.get(), c.get(), d.get()}, 30);
  Pass({b.get(), c.get(), d.get()}, 12);
  EXPECT_EQ(ShardOf(c), std::nullopt);
  Pass({b.get(), c.get(), d.get()}, 10);
  EXPECT_THAT(ShardOf(c), Optional(0));
  EXPECT_EQ(ShardOf(d), std::nullopt);
  EXPECT_EQ(b->ownership->OwnerOf(0), "c:1");
  EXPECT_EQ(c->ownership->takeovers(), 1u);
  EXPECT_EQ(c->changes, 1);

  // The zombie notices at its next look, and stands by.
  EXPECT_THAT(ShardOf(a), Optional(0));
  Pass({a.get(), b.get(), c.get(), d.get()}, 1);
  EXPECT_EQ(ShardOf(a), std::nullopt);
  EXPECT_EQ(a->changes, 2);
  a->ownership->Seek();
  Pass({a.get(), b.get(), c.get(), d.get()}, 60);
  EXPECT_EQ(ShardOf(a), std::nullopt);

  // Then it can take another shard than its first.
  Pass({a.get(), c.get()}, 30);
  EXPECT_THAT(ShardOf(a), Optional(1));
}

TEST_F(OwnershipTest, WhatIsReleasedGoesOnWithinASecond) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  const auto c = Run("c:1");
  Pass({a.get(), b.get(), c.get()}, 5);
  b->ownership->Release();
  EXPECT_EQ(ShardOf(b), std::nullopt);
  Pass({a.get(), b.get(), c.get()}, 1);
  EXPECT_THAT(ShardOf(c), Optional(1));
  EXPECT_EQ(ShardOf(b), std::nullopt);
}

TEST_F(OwnershipTest, AProcessThatStartsAgainSoonGoesOn) {
  const auto c = Run("c:1");
  auto a = Run("a:1");
  const auto b = Run("b:1");
  Pass({a.get(), b.get(), c.get()}, 5);
  a.reset();
  Pass({b.get(), c.get()}, 15);
  a = Run("a:1");
  Pass({a.get(), b.get(), c.get()}, 60);
  EXPECT_THAT(ShardOf(a), Optional(0));
  EXPECT_EQ(ShardOf(c), std::nullopt);
}

TEST_F(OwnershipTest, ItTakesNothingBeforeItIsReady) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  const auto c = Run("c:1");
  Pass({a.get(), b.get(), c.get()}, 5);
  // Another collector takes the shard behind its back: it has to be told to seek again.
  storage::OwnerMapObject map(&bucket_, [] { return 99; });
  ASSERT_TRUE(map.Change(0, "a:1", "c:1").ok());
  Pass({a.get()}, 1);
  EXPECT_EQ(ShardOf(a), std::nullopt);
  ASSERT_TRUE(map.Change(0, "c:1", "").ok());
  Pass({a.get()}, 5);
  EXPECT_EQ(ShardOf(a), std::nullopt);
  a->ownership->Seek();
  Pass({a.get()}, 1);
  EXPECT_THAT(ShardOf(a), Optional(0));
}

// The shard's log has told that another one is the owner, and the bucket does not answer yet.
TEST_F(OwnershipTest, AfterADoubtTheMapDecides) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  Pass({a.get(), b.get()}, 5);
  bool answers = false;
  bucket_.set_faults([&answers](const storage::BucketRequest&) {
    return answers ? storage::BucketFault::kNone : storage::BucketFault::kRefused;
  });
  for (const auto* process : {&a, &b}) {
    (*process)->ownership->Doubt();
    (*process)->ownership->Seek();
  }
  Pass({a.get(), b.get()}, 5);
  EXPECT_EQ(ShardOf(a), std::nullopt);
  answers = true;
  storage::OwnerMapObject map(&bucket_, [] { return 99; });
  ASSERT_TRUE(map.Change(0, "a:1", "c:1").ok());
  Pass({a.get(), b.get()}, 5);
  EXPECT_EQ(ShardOf(a), std::nullopt);
  EXPECT_THAT(ShardOf(b), Optional(1));
}

TEST_F(OwnershipTest, NobodyTakesAnythingAfterAnAbsenceOfTheBucket) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  const auto c = Run("c:1");
  Pass({a.get(), b.get(), c.get()}, 10);
  bucket_.set_faults([](const storage::BucketRequest&) { return storage::BucketFault::kRefused; });
  Pass({a.get(), b.get(), c.get()}, 600);
  bucket_.set_faults([](const storage::BucketRequest&) { return storage::BucketFault::kNone; });
  Pass({c.get()}, 15);  // It is the first that looks again.
  Pass({a.get(), b.get(), c.get()}, 60);
  EXPECT_THAT(ShardOf(a), Optional(0));
  EXPECT_THAT(ShardOf(b), Optional(1));
  EXPECT_EQ(ShardOf(c), std::nullopt);
}

TEST_F(OwnershipTest, ADamagedSignOfLifeIsNone) {
  const auto a = Run("a:1");
  const auto b = Run("b:1");
  const auto c = Run("c:1");
  Pass({a.get(), b.get(), c.get()}, 10);
  ASSERT_TRUE(bucket_.Put(storage::HeartbeatKey("a:1"), "damaged").ok());
  Pass({b.get(), c.get()}, 10);
  EXPECT_EQ(ShardOf(c), std::nullopt);
  Pass({b.get(), c.get()}, 20);
  EXPECT_THAT(ShardOf(c), Optional(0));
}

// Collectors come, go, stand still and lose answers of the bucket in any order. When that is over,
// each shard has one owner that lives, and the map names it.
TEST_F(OwnershipTest, WhateverHappensEachShardGetsOneOwnerInTheEnd) {
  const std::vector<std::string> addresses = {"a:1", "b:1", "c:1", "d:1"};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&random](uint64_t below) { return random() % below; };
    bool troubled = true;
    bucket_.set_faults([&](const storage::BucketRequest& request) {
      if (!troubled || draw(10) != 0) return storage::BucketFault::kNone;
      if (!request.writes()) return storage::BucketFault::kRefused;
      constexpr std::array kFaults = {storage::BucketFault::kRefused,
                                      storage::BucketFault::kAnswerLost,
                                      storage::BucketFault::kLate, storage::BucketFault::kTwice};
      return kFaults[draw(kFaults.size())];
    });
    std::map<std::string, std::unique_ptr<Process>> processes;
    std::set<std::string> stands_still;
    for (int second = 0; second < 400; ++second) {
      now_ += absl::Seconds(1);
      const std::string& address = addresses[draw(addresses.size())];
      switch (draw(40)) {
        case 0:
          processes[address] = Run(address);
          break;
        case 1:
          processes.erase(address);
          break;
        case 2:
          stands_still.insert(address);
          break;
        case 3:
          stands_still.erase(address);
          break;
        case 4:
          if (const auto found = processes.find(address); found != processes.end()) {
            found->second->ownership->Release();
            processes.erase(found);
          }
          break;
        case 5:
          bucket_.DeliverLate();
          break;
        default:
          break;
      }
      for (const auto& [name, process] : processes) {
        if (stands_still.contains(name)) continue;
        process->ownership->Look();
        if (!process->ownership->shard().has_value()) process->ownership->Seek();
      }
    }
    bucket_.DeliverLate();
    troubled = false;
    for (const char* const address : {"c:1", "d:1"}) {
      if (!processes.contains(address)) processes[address] = Run(address);
    }
    std::map<uint32_t, std::string> owners;
    for (int second = 0; second < 60; ++second) {
      now_ += absl::Seconds(1);
      owners.clear();
      for (const auto& [name, process] : processes) {
        process->ownership->Look();
        const auto shard = process->ownership->shard();
        if (!shard.has_value()) {
          process->ownership->Seek();
        } else {
          EXPECT_TRUE(owners.emplace(*shard, name).second || second < 2) << "seed " << seed;
        }
      }
    }
    EXPECT_EQ(owners.size(), kShards) << "seed " << seed;
    for (const auto& [name, process] : processes) {
      for (const auto& [shard, owner] : owners) {
        EXPECT_EQ(process->ownership->OwnerOf(shard), owner) << "seed " << seed;
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tacho::server::takeover
