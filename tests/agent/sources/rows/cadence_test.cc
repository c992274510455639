#include "agent/sources/rows/cadence.h"

#include <gtest/gtest.h>

#include <vector>

namespace tacho::agent {
namespace {

absl::Time At(double unix_seconds) { return absl::UnixEpoch() + absl::Seconds(unix_seconds); }

TEST(NextAlignedTest, IsTheFirstMultipleAfterNow) {
  EXPECT_EQ(NextAligned(At(1003), absl::Seconds(10)), At(1010));
  EXPECT_EQ(NextAligned(At(1010), absl::Seconds(10)), At(1020)) << "after, never at";
  EXPECT_EQ(NextAligned(At(1009.999999999), absl::Seconds(10)), At(1010));
  EXPECT_EQ(NextAligned(At(7.25), absl::Milliseconds(100)), At(7.3));
  EXPECT_EQ(NextAligned(At(7201), absl::Minutes(30)), At(9000));
  EXPECT_EQ(NextAligned(At(-3), absl::Seconds(10)), At(0)) << "a clock before 1970";
  EXPECT_EQ(NextAligned(At(-10), absl::Seconds(10)), At(0));
}

TEST(NextAlignedTest, IsTheSameOnHostsWhoseAgentsStartedAtDifferentTimes) {
  for (const absl::Duration interval :
       {absl::Milliseconds(100), absl::Seconds(1), absl::Seconds(15), absl::Minutes(5)}) {
    const absl::Time one = NextAligned(At(1'700'000'000.02), interval);
    EXPECT_EQ(one, NextAligned(At(1'700'000'000.07), interval)) << interval;
  }
}

TEST(CadenceTest, SamplesFirstAtOnceAndThenOnceAMultiple) {
  Cadence cadence(absl::Seconds(10));
  EXPECT_TRUE(cadence.TakeDue(At(1003)));
  EXPECT_EQ(cadence.due(), At(1010));
  EXPECT_FALSE(cadence.TakeDue(At(1009.999)));
  EXPECT_TRUE(cadence.TakeDue(At(1010)));
  EXPECT_FALSE(cadence.TakeDue(At(1010)));
}

// However late each poll is, a thousand intervals later the samples are at the same multiples.
TEST(CadenceTest, DoesNotDrift) {
  Cadence cadence(absl::Milliseconds(100));
  absl::Time now = At(5000);
  ASSERT_TRUE(cadence.TakeDue(now));
  for (int i = 1; i <= 1000; ++i) {
    now = cadence.due() + absl::Milliseconds(i % 90);
    ASSERT_TRUE(cadence.TakeDue(now)) << i;
  }
  EXPECT_EQ(cadence.due(), At(5100.1));
}

TEST(CadenceTest, WhatAPauseHasMissedIsNotMadeUp) {
  Cadence cadence(absl::Seconds(1));
  ASSERT_TRUE(cadence.TakeDue(At(100)));
  EXPECT_TRUE(cadence.TakeDue(At(200.5)));
  EXPECT_EQ(cadence.due(), At(201));
  EXPECT_FALSE(cadence.TakeDue(At(200.6)));
}

TEST(CadenceTest, ClockSetForwardsSamplesAtOnceAndGoesOnAligned) {
  Cadence cadence(absl::Seconds(10));
  ASSERT_TRUE(cadence.TakeDue(At(1003)));
  EXPECT_TRUE(cadence.TakeDue(At(4607)));
  EXPECT_EQ(cadence.due(), At(4610));
}

TEST(CadenceTest, ClockSetBackByHoursDoesNotSilence) {
  Cadence cadence(absl::Seconds(10));
  ASSERT_TRUE(cadence.TakeDue(At(9003)));
  EXPECT_TRUE(cadence.TakeDue(At(1804)));
  EXPECT_EQ(cadence.due(), At(1810));
}

// A correction by less than an interval must not take the same multiple twice.
TEST(CadenceTest, ClockSetBackALittleWaitsForTheSameMultiple) {
  Cadence cadence(absl::Seconds(10));
  ASSERT_TRUE(cadence.TakeDue(At(1010.2)));
  EXPECT_FALSE(cadence.TakeDue(At(1012)));
  EXPECT_EQ(cadence.due(), At(1020));
  EXPECT_TRUE(cadence.TakeDue(At(1020)));
}

}  // namespace
}  // namespace tacho::agent
