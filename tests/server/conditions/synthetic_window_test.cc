// Tests the synthetic fleet itself, because it is what detectors are judged by.
#include "tests/support/synthetic_window.h"

#include <algorithm>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::testing {
namespace {

using server::conditions::FindTrack;
using server::conditions::JobWindow;
using server::conditions::Newest;
using server::conditions::Signal;
using server::conditions::Track;

const Track& TrackOf(const JobWindow& window, size_t task, Signal signal) {
  const Track* track = FindTrack(window.tasks.at(task).tracks, signal);
  EXPECT_NE(track, nullptr);
  return *track;
}

TEST(SyntheticFleet, IsTheSameWheneverAsked) {
  const SyntheticFleet fleet({.tasks = 4}, {});
  const JobWindow once = fleet.At(600);
  (void)fleet.At(900);
  const JobWindow again = SyntheticFleet({.tasks = 4}, {}).At(600);
  EXPECT_EQ(TrackOf(once, 3, Signal::kLoss).points, TrackOf(again, 3, Signal::kLoss).points);
  EXPECT_EQ(TrackOf(once, 3, Signal::kCompute).points, TrackOf(again, 3, Signal::kCompute).points);
}

TEST(SyntheticFleet, PhasesMakeUpTheStepAndStepsAreEqualOnAllTasks) {
  const JobWindow window =
      SyntheticFleet({.tasks = 4}, {{.kind = FaultKind::kSlowHost, .host = 2, .amount = 0.5}})
          .At(600);
  for (size_t i = 1; i < 20; ++i) {
    for (size_t task = 0; task < 4; ++task) {
      const double step = TrackOf(window, task, Signal::kStepTime).points[i].value;
      EXPECT_DOUBLE_EQ(step, TrackOf(window, 0, Signal::kStepTime).points[i].value);
      EXPECT_NEAR(step,
                  TrackOf(window, task, Signal::kDataWait).points[i].value +
                      TrackOf(window, task, Signal::kCompute).points[i].value +
                      TrackOf(window, task, Signal::kCommWait).points[i].value,
                  1e-9);
    }
    EXPECT_LT(TrackOf(window, 2, Signal::kCommWait).points[i].value,
              TrackOf(window, 0, Signal::kCommWait).points[i].value - 0.2);
  }
}

TEST(SyntheticFleet, WithoutBarriersStepTimesDiffer) {
  const JobWindow window = SyntheticFleet({.tasks = 4, .synchronous = false},
                                          {{.kind = FaultKind::kSlowHost, .host = 2, .amount = 1}})
                               .At(600);
  EXPECT_LT(*window.tasks[2].last_step, *window.tasks[0].last_step * 2 / 3);
}

TEST(SyntheticFleet, AHangStopsAllAndOneChip) {
  const SyntheticFleet fleet(
      {.tasks = 4}, {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 300, .amount = 1}});
  const JobWindow window = fleet.At(600);
  EXPECT_LT(window.tasks[0].last_step_time_ns, SyntheticFleet::Time(301));
  EXPECT_EQ(*window.tasks[1].last_step, *window.tasks[0].last_step - 1);
  EXPECT_EQ(Newest(window.chips[4].tracks, Signal::kChipBusy), 0.0);
  EXPECT_EQ(Newest(window.chips[0].tracks, Signal::kChipBusy), 1.0);
  EXPECT_GT(*Newest(window.chips[4].tracks, Signal::kChipIdleSeconds), 280);
}

TEST(SyntheticFleet, GoesOnAfterAHangThatPasses) {
  const SyntheticFleet fleet(
      {.tasks = 4},
      {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 300, .until_seconds = 400}});
  EXPECT_GT(fleet.At(450).tasks[1].last_step_time_ns, SyntheticFleet::Time(440));
}

TEST(SyntheticFleet, ASilentAgentTakesAllOfItsHostWithIt) {
  const JobWindow window =
      SyntheticFleet({.tasks = 4},
                     {{.kind = FaultKind::kSilentAgent, .host = 1, .at_seconds = 300}})
          .At(600);
  EXPECT_FALSE(window.hosts[1].agent->connected);
  EXPECT_LE(window.tasks[1].last_time_ns, SyntheticFleet::Time(300));
  EXPECT_LE(FindTrack(window.chips[4].tracks, Signal::kChipBusy)->points.back().time_ns,
            SyntheticFleet::Time(300));
  EXPECT_GT(window.tasks[0].last_time_ns, SyntheticFleet::Time(590));
}

TEST(SyntheticFleet, NotANumberSpreads) {
  const SyntheticFleet fleet({.tasks = 4},
                             {{.kind = FaultKind::kNan, .task = 2, .at_seconds = 300}});
  const JobWindow window = fleet.At(600);
  const auto first_nan = [&](size_t task) {
    const Track& track = TrackOf(window, task, Signal::kLoss);
    return std::find_if(
               track.points.begin(), track.points.end(),
               [](const server::conditions::Point& point) { return std::isnan(point.value); })
        ->step;
  };
  EXPECT_EQ(first_nan(2) + 2, first_nan(0));
  EXPECT_EQ(first_nan(2), *fleet.StepAt(300));
}

TEST(SyntheticFleet, EndsWell) {
  const JobWindow window = SyntheticFleet({.tasks = 4, .steps = 100}, {}).At(600);
  EXPECT_TRUE(window.ended);
  EXPECT_EQ(window.events.back().kind, "ended");
  EXPECT_EQ(window.events.back().fields.at("status"), "succeeded");
}

TEST(SyntheticFleet, RowsAreInOrderAndNotOfTheFuture) {
  const JobWindow window = SyntheticFleet({.tasks = 2}, {}).At(777);
  for (const auto& [signal, tracks] : window.tasks[1].tracks) {
    EXPECT_TRUE(std::is_sorted(tracks[0].points.begin(), tracks[0].points.end(),
                               [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; }));
    EXPECT_LE(tracks[0].points.back().time_ns, window.now_ns);
  }
}

}  // namespace
}  // namespace tacho::testing
