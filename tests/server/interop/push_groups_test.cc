// The book of groups alone: what a push replaces, and when a group ends.
#include "server/interop/push_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const storage::Labels kEval = {{"job", "eval"}};
const storage::Labels kOther = {{"job", "other"}};

class PushGroupsTest : public testing::Test {
 protected:
  // "loss" is the series of that name; "loss/b" is another of the same name.
  static std::vector<PushedSeries> Series(const std::vector<std::string>& keys) {
    std::vector<PushedSeries> series;
    for (const std::string& key : keys) series.push_back({key, key.substr(0, key.find('/'))});
    return series;
  }
  PushPlan Begin(PushChange change, const std::vector<std::string>& keys,
                 const storage::Labels& group = kEval) {
    auto plan = groups_.Begin(group, change, Series(keys), now_ns_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : PushPlan();
  }
  // What it ends.
  std::vector<std::string> Push(PushChange change, const std::vector<std::string>& keys,
                                const storage::Labels& group = kEval) {
    const PushPlan plan = Begin(change, keys, group);
    groups_.Settled(plan, Series(keys), now_);
    return plan.ended;
  }
  std::vector<PushPlan> Due() { return groups_.Due(now_, now_ns_); }

  int64_t now_ns_ = 1'000'000;
  absl::Time now_ = absl::UnixEpoch();
  PushGroups groups_{{.max_groups = 2, .max_bytes = 4000, .expiry = absl::Hours(1)}};
};

TEST_F(PushGroupsTest, APostEndsWhatElseItsNamesHad) {
  EXPECT_THAT(Push(PushChange::kNames, {"loss/a", "loss/b", "speed"}), IsEmpty());
  EXPECT_THAT(Push(PushChange::kNames, {"loss/b", "loss/c"}), ElementsAre("loss/a"));
  EXPECT_THAT(Push(PushChange::kEnd, {}), UnorderedElementsAre("loss/b", "loss/c", "speed"));
}

TEST_F(PushGroupsTest, APutEndsEverythingElse) {
  Push(PushChange::kNames, {"loss/a", "speed"});
  EXPECT_THAT(Push(PushChange::kGroup, {"loss/a", "new"}), ElementsAre("speed"));
  EXPECT_THAT(Push(PushChange::kGroup, {}), UnorderedElementsAre("loss/a", "new"));
  EXPECT_EQ(groups_.size(), 0u);
}

TEST_F(PushGroupsTest, GroupsDoNotTouchEachOther) {
  Push(PushChange::kNames, {"loss"});
  EXPECT_THAT(Push(PushChange::kGroup, {"speed"}, kOther), IsEmpty());
  EXPECT_THAT(Push(PushChange::kEnd, {}, kOther), ElementsAre("speed"));
  EXPECT_THAT(Push(PushChange::kEnd, {}), ElementsAre("loss"));
  EXPECT_THAT(Push(PushChange::kEnd, {}), IsEmpty()) << "it is unknown now";
}

TEST_F(PushGroupsTest, APushThatIsNotStoredChangesNothing) {
  Push(PushChange::kNames, {"loss", "speed"});
  Begin(PushChange::kGroup, {"new"});
  Begin(PushChange::kEnd, {});
  EXPECT_THAT(Push(PushChange::kEnd, {}), UnorderedElementsAre("loss", "speed"));
}

TEST_F(PushGroupsTest, EachPushHasALaterTime) {
  Push(PushChange::kNames, {"loss"});
  const int64_t first = Begin(PushChange::kNames, {"loss"}).time_ns;
  EXPECT_GT(Begin(PushChange::kNames, {"loss"}).time_ns, first);
  now_ns_ -= 3'600'000'000'000;
  EXPECT_EQ(Begin(PushChange::kNames, {"loss"}).time_ns, now_ns_) << "the clock was set back";
}

// Both plans were made when the group had "old" alone.
TEST_F(PushGroupsTest, WhatTwoPushesAtOnceLeaveBehindIsDue) {
  Push(PushChange::kNames, {"old"});
  const PushPlan first = Begin(PushChange::kGroup, {"first"});
  const PushPlan second = Begin(PushChange::kGroup, {"second"});
  groups_.Settled(first, Series({"first"}), now_);
  EXPECT_THAT(Due(), IsEmpty());
  groups_.Settled(second, Series({"second"}), now_);
  const auto due = Due();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_THAT(due[0].ended, ElementsAre("first"));
  groups_.Settled(due[0], {}, now_);
  EXPECT_THAT(Due(), IsEmpty());
  EXPECT_THAT(Push(PushChange::kEnd, {}), ElementsAre("second"));
}

TEST_F(PushGroupsTest, AGroupExpiresAfterItsLastPush) {
  Push(PushChange::kNames, {"loss"});
  now_ += absl::Minutes(59);
  Push(PushChange::kNames, {"speed"});
  now_ += absl::Minutes(59);
  EXPECT_THAT(Due(), IsEmpty());
  now_ += absl::Minutes(1);
  ASSERT_EQ(Due().size(), 1u);
  EXPECT_THAT(Due()[0].ended, UnorderedElementsAre("loss", "speed")) << "until it is stored";
  groups_.Settled(Due()[0], {}, now_);
  EXPECT_EQ(groups_.size(), 0u);
  EXPECT_EQ(groups_.bytes(), 0u);
}

TEST_F(PushGroupsTest, APushDuringTheExpiryKeepsTheGroup) {
  Push(PushChange::kNames, {"loss"});
  now_ += absl::Hours(1);
  const auto due = Due();
  ASSERT_EQ(due.size(), 1u);
  Push(PushChange::kNames, {"loss"});
  groups_.Settled(due[0], {}, now_);
  EXPECT_THAT(Push(PushChange::kEnd, {}), ElementsAre("loss"));
}

TEST_F(PushGroupsTest, WithoutAnExpiryAGroupStays) {
  PushGroups groups({.expiry = absl::ZeroDuration()});
  groups.Settled(*groups.Begin(kEval, PushChange::kNames, Series({"loss"}), 1), Series({"loss"}),
                 now_);
  EXPECT_THAT(groups.Due(now_ + absl::Hours(24 * 365), 2), IsEmpty());
}

TEST_F(PushGroupsTest, TooManyGroupsAreRefusedUntilOneGoes) {
  Push(PushChange::kNames, {"loss"});
  Push(PushChange::kNames, {"loss"}, kOther);
  const storage::Labels third = {{"job", "third"}};
  const auto refused = groups_.Begin(third, PushChange::kNames, Series({"loss"}), 1);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("interop.push_expiry"));
  Push(PushChange::kNames, {"loss"});
  Push(PushChange::kEnd, {}, kOther);
  Push(PushChange::kNames, {"loss"}, third);
  EXPECT_EQ(groups_.size(), 2u);
}

TEST_F(PushGroupsTest, MemoryIsBounded) {
  const std::string half(1500, 'x');
  Push(PushChange::kGroup, {half});
  EXPECT_TRUE(
      absl::IsUnavailable(groups_.Begin(kOther, PushChange::kGroup, Series({half}), 1).status()));
  EXPECT_THAT(Push(PushChange::kEnd, {}), ElementsAre(half)) << "which makes room";
  EXPECT_EQ(groups_.bytes(), 0u);
  // Both found room when they began.
  const PushPlan one = Begin(PushChange::kGroup, {half});
  const PushPlan two = Begin(PushChange::kGroup, {half}, kOther);
  groups_.Settled(one, Series({half}), now_);
  groups_.Settled(two, Series({half}), now_);
  EXPECT_EQ(groups_.size(), 1u);
  EXPECT_LE(groups_.bytes(), 4000u);
}

}  // namespace
}  // namespace tacho::server::interop
