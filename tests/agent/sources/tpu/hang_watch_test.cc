#include <gtest/gtest.h>

#include "agent/sources/tpu/tpu_troubles.h"

namespace tacho::agent {
namespace {

absl::Time At(int seconds) { return absl::FromUnixSeconds(1000 + seconds); }

TpuActivity Executed(double programs) {
  return {.held = true, .busiest = 1.0, .executed = programs, .queued = 1};
}
TpuActivity Busy(double duty, double queued) {
  return {.held = true, .busiest = duty, .executed = std::nullopt, .queued = queued};
}

TEST(HangWatchTest, TellsOnceWhenNothingWasExecutedForSoLong) {
  HangWatch watch(absl::Seconds(60));
  EXPECT_FALSE(watch.Look(At(0), Executed(5)));
  EXPECT_FALSE(watch.Look(At(10), Executed(6)));
  EXPECT_FALSE(watch.Look(At(69), Executed(6)));
  EXPECT_TRUE(watch.Look(At(70), Executed(6))) << "though the chip is busy: it spins";
  EXPECT_FALSE(watch.Look(At(200), Executed(6)));
  EXPECT_FALSE(watch.Look(At(210), Executed(7)));
  EXPECT_TRUE(watch.Look(At(270), Executed(7))) << "again, after progress";
}

TEST(HangWatchTest, WithoutCountsAnIdleChipAndAQueueThatDoesNotMoveLookHung) {
  HangWatch watch(absl::Seconds(60));
  EXPECT_FALSE(watch.Look(At(0), Busy(0, 3)));
  EXPECT_FALSE(watch.Look(At(50), Busy(0.1, 3)));
  EXPECT_FALSE(watch.Look(At(60), Busy(0, 2)));
  EXPECT_FALSE(watch.Look(At(110), Busy(0, 2)));
  EXPECT_TRUE(watch.Look(At(120), Busy(0, 2)));
}

TEST(HangWatchTest, ChipsThatNobodyHoldsAreIdleAndNotHung) {
  HangWatch watch(absl::Seconds(60));
  TpuActivity idle = Executed(5);
  idle.held = false;
  EXPECT_FALSE(watch.Look(At(0), idle));
  EXPECT_FALSE(watch.Look(At(100), idle));
  EXPECT_FALSE(watch.Look(At(110), Executed(5)));
  EXPECT_FALSE(watch.Look(At(120), Executed(5)));
}

TEST(HangWatchTest, ZeroIsNever) {
  HangWatch watch(absl::ZeroDuration());
  EXPECT_FALSE(watch.Look(At(0), Executed(5)));
  EXPECT_FALSE(watch.Look(At(100000), Executed(5)));
}

}  // namespace
}  // namespace tacho::agent
