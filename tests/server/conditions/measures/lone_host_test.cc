#include "server/conditions/measures/lone_host.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using testing::SyntheticFleet;
using testing::SyntheticHost;

// A pause that has lasted for `seconds` when it is looked at.
constexpr double kAt = 605;

JobWindow Hang(FleetOptions options, uint32_t host, double seconds) {
  const SyntheticFleet fleet(std::move(options),
                             {{.kind = FaultKind::kHang, .host = host, .at_seconds = kAt}});
  return fleet.At(kAt + seconds);
}

std::optional<std::string> WaitedFor(const JobWindow& window) {
  return HostWaitedFor(window, SyntheticFleet::Time(kAt));
}

void SetCpu(JobWindow* window, size_t host, double from_seconds, double value) {
  for (Point& point : window->hosts[host].tracks[Signal::kHostCpuBusy][0].points) {
    if (point.time_ns > SyntheticFleet::Time(from_seconds)) point.value = value;
  }
}

void SetBusy(JobWindow* window, size_t chip, double from_seconds, double to_seconds, double value) {
  for (Point& point : window->chips[chip].tracks[Signal::kChipBusy][0].points) {
    if (point.time_ns > SyntheticFleet::Time(from_seconds) &&
        point.time_ns <= SyntheticFleet::Time(to_seconds)) {
      point.value = value;
    }
  }
}

TEST(LoneHostTest, IsTheHostWhoseChipsAreIdleWhileAllOthersWait) {
  EXPECT_EQ(WaitedFor(Hang({.tasks = 4}, 2, 35)), SyntheticHost(2));
}

TEST(LoneHostTest, ASingleChipOfAHostIsEnough) {
  JobWindow window = Hang({.tasks = 4}, 2, 35);
  for (size_t chip = 9; chip < 12; ++chip) SetBusy(&window, chip, kAt, kAt + 100, 1);
  EXPECT_EQ(WaitedFor(window), SyntheticHost(2));
  SetBusy(&window, 8, kAt, kAt + 100, 1);
  EXPECT_EQ(WaitedFor(window), std::nullopt) << "all wait";
}

TEST(LoneHostTest, TwoFiguresOfEachChipAreNeeded) {
  EXPECT_EQ(WaitedFor(Hang({.tasks = 4}, 2, 20)), std::nullopt);
}

TEST(LoneHostTest, NobodyIsWaitedForInAPauseOfAll) {
  const SyntheticFleet stall({.tasks = 4}, {{.kind = FaultKind::kDataStall, .at_seconds = kAt}});
  EXPECT_EQ(WaitedFor(stall.At(kAt + 60)), std::nullopt);
}

TEST(LoneHostTest, TheFirstTaskMayWorkForAllOthers) {
  EXPECT_EQ(WaitedFor(Hang({.tasks = 4}, 0, 60)), std::nullopt);
}

TEST(LoneHostTest, TwoHostsThatAreIdleWriteSomethingTogether) {
  JobWindow window = Hang({.tasks = 8}, 2, 60);
  for (size_t chip = 20; chip < 24; ++chip) SetBusy(&window, chip, kAt, kAt + 100, 0);
  EXPECT_EQ(WaitedFor(window), std::nullopt);
}

TEST(LoneHostTest, WhatItDidBeforeItMayDoAgain) {
  JobWindow window = Hang({.tasks = 4}, 2, 60);
  for (size_t chip = 8; chip < 12; ++chip) SetBusy(&window, chip, 300, 330, 0);
  EXPECT_EQ(WaitedFor(window), std::nullopt);
}

TEST(LoneHostTest, AHostThatWorksIsNotWaitedForInVain) {
  JobWindow window = Hang({.tasks = 4}, 2, 60);
  SetCpu(&window, 2, kAt, 0.5);
  EXPECT_EQ(WaitedFor(window), std::nullopt);
}

TEST(LoneHostTest, ChipsThatAreNotUsedDoNotCount) {
  JobWindow window = Hang({.tasks = 4}, 2, 60);
  SetBusy(&window, 0, 0, kAt + 100, 0);
  EXPECT_EQ(WaitedFor(window), SyntheticHost(2));
}

TEST(LoneHostTest, TwoHostsAreTooFew) {
  EXPECT_EQ(WaitedFor(Hang({.tasks = 2}, 1, 60)), std::nullopt);
}

TEST(LoneHostTest, WithoutFiguresOfChipsNothingIsKnown) {
  EXPECT_EQ(WaitedFor(Hang({.tasks = 4, .omit = {Signal::kChipBusy}}, 2, 60)), std::nullopt);
}

}  // namespace
}  // namespace tacho::server::conditions
