#include "server/conditions/condition_state.h"

#include <gtest/gtest.h>

namespace tacho::server::conditions {
namespace {

using Change = ConditionState::Change;

constexpr int64_t kSecond = 1'000'000'000;
const ConditionState::Times kTimes = {absl::Seconds(10), absl::Seconds(20)};

Finding Present(int64_t since_ns = 0, const char* reason = "Bad", uint32_t task = 3) {
  Finding finding = NotPresent();
  finding.present = true;
  finding.reason = reason;
  finding.since_ns = since_ns;
  Culprit culprit;
  culprit.task = task;
  finding.culprits.push_back(culprit);
  return finding;
}

class ConditionStateTest : public testing::Test {
 protected:
  Change At(int64_t seconds, const Finding& finding, bool frozen = false) {
    return state_.Update(finding, seconds * kSecond, kTimes, frozen);
  }

  ConditionState state_;
};

TEST_F(ConditionStateTest, IsRaisedOnceTheFindingHasHeld) {
  EXPECT_EQ(At(100, NotPresent()), Change::kOther) << "unknown before";
  EXPECT_EQ(At(101, Present()), Change::kNone);
  EXPECT_EQ(At(110, Present()), Change::kNone);
  EXPECT_EQ(state_.status(), ConditionStatus::kFalse);
  EXPECT_EQ(At(111, Present()), Change::kRaised);
  EXPECT_EQ(state_.status(), ConditionStatus::kTrue);
  EXPECT_EQ(state_.since_ns(), 101 * kSecond);
  EXPECT_EQ(state_.changed_ns(), 111 * kSecond);
}

TEST_F(ConditionStateTest, SinceIsWhatTheDataSays) {
  At(100, Present(42 * kSecond));
  At(110, Present(42 * kSecond));
  EXPECT_EQ(state_.since_ns(), 42 * kSecond);
  At(120, Present(90 * kSecond));
  EXPECT_EQ(state_.since_ns(), 42 * kSecond) << "it does not jump while it is true";
}

TEST_F(ConditionStateTest, AFindingThatComesAndGoesIsNeverRaised) {
  for (int64_t s = 0; s < 1000; s += 9) {
    EXPECT_NE(At(s, s % 2 == 0 ? Present() : NotPresent()), Change::kRaised) << s;
  }
}

TEST_F(ConditionStateTest, IsClearedOnceItHasBeenAbsentForLong) {
  At(0, Present());
  ASSERT_EQ(At(10, Present()), Change::kRaised);
  EXPECT_EQ(At(20, NotPresent()), Change::kNone);
  EXPECT_EQ(At(39, NotPresent()), Change::kNone);
  EXPECT_EQ(At(39, Present()), Change::kNone) << "still true";
  EXPECT_EQ(At(50, NotPresent()), Change::kNone);
  EXPECT_EQ(At(69, NotPresent()), Change::kNone) << "counted from 50";
  EXPECT_EQ(At(70, NotPresent()), Change::kCleared);
  EXPECT_EQ(state_.status(), ConditionStatus::kFalse);
  EXPECT_EQ(state_.since_ns(), 50 * kSecond);
}

TEST_F(ConditionStateTest, WithNothingToJudgeByItBecomesUnknown) {
  At(0, NotPresent());
  EXPECT_EQ(At(1, NotJudged()), Change::kNone);
  EXPECT_EQ(At(21, NotJudged()), Change::kOther);
  EXPECT_EQ(state_.status(), ConditionStatus::kUnknown);
  At(30, Present());
  At(40, Present());
  EXPECT_EQ(At(41, NotJudged()), Change::kNone);
  EXPECT_EQ(At(61, NotJudged()), Change::kCleared);
  EXPECT_EQ(state_.status(), ConditionStatus::kUnknown);
}

TEST_F(ConditionStateTest, AnotherReasonOrCulpritIsTold) {
  At(0, Present());
  At(10, Present());
  EXPECT_EQ(At(11, Present()), Change::kNone);
  EXPECT_EQ(At(12, Present(0, "Worse")), Change::kOther);
  EXPECT_EQ(At(13, Present(0, "Worse", 4)), Change::kNone) << "the first culprit stays";
  EXPECT_EQ(state_.finding().reason, "Worse");
  EXPECT_EQ(state_.since_ns(), 0 * kSecond);
}

Finding Blames(const std::vector<std::pair<std::string, uint32_t>>& culprits) {
  Finding finding = Present();
  finding.culprits.clear();
  for (const auto& [host, task] : culprits) {
    Culprit culprit;
    culprit.host = host;
    culprit.task = task;
    finding.culprits.push_back(culprit);
  }
  return finding;
}

std::string Named(const ConditionState& state) {
  std::string text;
  for (const Culprit& culprit : state.finding().culprits) {
    text += culprit.host + "/" + std::to_string(*culprit.task) + " ";
  }
  return text;
}

TEST_F(ConditionStateTest, WhichOfEqualTasksIsWorstMakesNoOtherCulprit) {
  At(0, Blames({{"h1", 8}}));
  At(10, Blames({{"h1", 8}}));
  for (int64_t i = 1; i < 8; ++i) {
    EXPECT_EQ(At(10 + i, Blames({{"h1", 8 + static_cast<uint32_t>(i)}})), Change::kNone);
    EXPECT_EQ(Named(state_), "h1/8 ");
  }
}

TEST_F(ConditionStateTest, OfTwoThatTakeTurnsTheFirstStaysFirst) {
  At(0, Blames({{"h1", 1}}));
  At(10, Blames({{"h1", 1}}));
  EXPECT_EQ(At(20, Blames({{"h2", 2}})), Change::kNone);
  EXPECT_EQ(Named(state_), "h1/1 h2/2 ");
  EXPECT_EQ(At(30, Blames({{"h2", 2}, {"h1", 1}})), Change::kNone);
  EXPECT_EQ(Named(state_), "h1/1 h2/2 ");
  EXPECT_EQ(At(600, Blames({{"h2", 2}})), Change::kNone);
  EXPECT_EQ(At(631, Blames({{"h2", 2}})), Change::kOther) << "it has been well for ten minutes";
  EXPECT_EQ(Named(state_), "h2/2 ");
}

TEST_F(ConditionStateTest, TasksOfOneHostThatAreNamedTogetherStayApart) {
  At(0, Blames({{"h1", 1}, {"h1", 2}}));
  At(10, Blames({{"h1", 1}, {"h1", 2}}));
  At(11, Blames({{"h1", 2}, {"h1", 3}, {"h1", 1}}));
  EXPECT_EQ(Named(state_), "h1/1 h1/2 h1/3 ");
}

TEST_F(ConditionStateTest, NothingIsRaisedOrClearedWhileItIsFrozen) {
  EXPECT_EQ(At(0, Present(), true), Change::kNone);
  EXPECT_EQ(At(30, Present(), true), Change::kNone);
  EXPECT_EQ(At(31, Present()), Change::kRaised) << "it has held meanwhile";
  EXPECT_EQ(At(40, NotPresent(), true), Change::kNone);
  EXPECT_EQ(At(90, NotPresent(), true), Change::kNone);
  EXPECT_EQ(At(91, NotPresent()), Change::kCleared);
}

TEST_F(ConditionStateTest, WhatWasRestoredIsNotRaisedAgain) {
  state_.Restore(Present(), 5 * kSecond, 7 * kSecond);
  EXPECT_EQ(At(100, Present(90 * kSecond)), Change::kNone);
  EXPECT_EQ(state_.since_ns(), 5 * kSecond);
  EXPECT_EQ(state_.changed_ns(), 7 * kSecond);
  At(110, NotPresent());
  EXPECT_EQ(At(130, NotPresent()), Change::kCleared);
}

TEST_F(ConditionStateTest, EndsAtOnce) {
  EXPECT_EQ(state_.End(0, "Over", ""), Change::kNone);
  state_.Restore(Present(), 5 * kSecond, 7 * kSecond);
  EXPECT_EQ(state_.End(9 * kSecond, "Over", "it is over"), Change::kCleared);
  EXPECT_EQ(state_.status(), ConditionStatus::kUnknown);
  EXPECT_EQ(state_.finding().reason, "Over");
}

}  // namespace
}  // namespace tacho::server::conditions
