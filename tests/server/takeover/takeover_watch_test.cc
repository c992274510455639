#include "server/takeover/takeover_watch.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::takeover {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

constexpr absl::Duration kAfter = absl::Seconds(20);

class TakeoverWatchTest : public testing::Test {
 protected:
  // A look, five seconds after the one before.
  void Look() {
    now_ += absl::Seconds(5);
    watch_.NoteLook(now_, map_, beats_);
  }
  void LookTimes(int times) {
    for (int i = 0; i < times; ++i) Look();
  }
  void Beat(const std::string& address) {
    beats_[address].life = 1;
    ++beats_[address].count;
  }
  std::vector<uint32_t> Vacant() const {
    std::vector<uint32_t> shards;
    for (const VacantShard& vacant : watch_.Vacant(now_)) shards.push_back(vacant.shard);
    return shards;
  }

  absl::Time now_ = absl::UnixEpoch();
  storage::OwnerMap map_ = {.owners = {{0, "a:1"}, {1, "b:1"}}};
  std::map<std::string, storage::Heartbeat> beats_;
  TakeoverWatch watch_{2, kAfter};
};

TEST_F(TakeoverWatchTest, AnOwnerThatLivesKeepsItsShard) {
  for (int i = 0; i < 100; ++i) {
    Beat("a:1");
    Beat("b:1");
    Look();
    ASSERT_THAT(Vacant(), IsEmpty());
  }
}

TEST_F(TakeoverWatchTest, ASilentOwnerLosesItAfterTheTime) {
  Beat("a:1");
  Beat("b:1");
  Look();
  for (int i = 0; i < 3; ++i) {
    Beat("a:1");
    Look();
    EXPECT_THAT(Vacant(), IsEmpty()) << i;
  }
  Beat("a:1");
  Look();  // 20 seconds after b:1 was seen as it is.
  EXPECT_THAT(watch_.Vacant(now_), ElementsAre(Field(&VacantShard::owner, "b:1")));
  Beat("b:1");
  Look();
  EXPECT_THAT(Vacant(), IsEmpty());
}

TEST_F(TakeoverWatchTest, AnOwnerThatStartsAgainLives) {
  LookTimes(4);
  beats_["a:1"] = {.life = 9, .count = 1};
  beats_["b:1"] = {.life = 9, .count = 1};
  Look();
  EXPECT_THAT(Vacant(), IsEmpty());
}

TEST_F(TakeoverWatchTest, NobodyHasComeForAShard) {
  map_.owners.clear();
  LookTimes(4);
  EXPECT_THAT(Vacant(), IsEmpty());
  Look();
  EXPECT_THAT(Vacant(), ElementsAre(0, 1));
}

TEST_F(TakeoverWatchTest, WhatWasReleasedIsVacantAtOnceAndComesFirst) {
  LookTimes(5);
  map_.owners[1] = "";
  Look();
  EXPECT_THAT(watch_.Vacant(now_),
              ElementsAre(Field(&VacantShard::released, true), Field(&VacantShard::shard, 0)));
}

// Nobody could write a sign of life while the bucket was away.
TEST_F(TakeoverWatchTest, AnAbsentBucketStartsTheTimeAnew) {
  LookTimes(4);
  watch_.NoteNoLook();
  now_ += absl::Hours(1);
  LookTimes(4);
  EXPECT_THAT(Vacant(), IsEmpty());
  Look();
  EXPECT_THAT(Vacant(), ElementsAre(0, 1));
}

// A process that stood still itself has not seen the owner be silent.
TEST_F(TakeoverWatchTest, OneLookIsNotEnough) {
  Look();
  now_ += absl::Hours(1);
  EXPECT_THAT(Vacant(), IsEmpty());
  Look();
  EXPECT_THAT(Vacant(), IsEmpty());
}

TEST_F(TakeoverWatchTest, AnotherOwnerHasItsOwnTime) {
  LookTimes(4);
  map_.owners[0] = "c:1";
  Look();
  EXPECT_THAT(Vacant(), ElementsAre(1));
}

}  // namespace
}  // namespace tacho::server::takeover
