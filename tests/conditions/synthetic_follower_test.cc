#include "tests/conditions/synthetic_follower.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::testing {
namespace {

using server::conditions::JobWindow;
using server::conditions::Point;
using server::conditions::Signal;
using server::conditions::Track;
using server::conditions::Tracks;

constexpr FaultKind kKinds[] = {FaultKind::kHang, FaultKind::kMissingTask, FaultKind::kHostDies,
                                FaultKind::kSlowLink, FaultKind::kThrottle};

void ExpectSame(const Tracks& followed, const Tracks& whole) {
  ASSERT_EQ(followed.size(), whole.size());
  for (const auto& [signal, tracks] : whole) {
    const std::vector<Track>& others = followed.at(signal);
    ASSERT_EQ(others.size(), tracks.size());
    for (size_t i = 0; i < tracks.size(); ++i) {
      EXPECT_EQ(others[i].metric, tracks[i].metric);
      EXPECT_TRUE(others[i].points == tracks[i].points) << tracks[i].metric;
    }
  }
}

TEST(SyntheticFollowerTest, ShowsWhatAWholeWindowShows) {
  for (const FaultKind kind : kKinds) {
    for (const bool synchronous : {true, false}) {
      const SyntheticFleet fleet(
          {.tasks = 4, .tasks_per_host = 2, .synchronous = synchronous, .collectives = true},
          {{.kind = kind, .host = 1, .at_seconds = 403, .amount = 0.3}}, 700);
      SyntheticFollower follower(fleet, 1000);
      for (double t = 5; t < 600; t += 35) (void)follower.At(t);
      const JobWindow& followed = follower.At(650);
      const JobWindow whole = fleet.At(650);
      ASSERT_EQ(followed.tasks.size(), whole.tasks.size());
      for (size_t i = 0; i < whole.tasks.size(); ++i) {
        EXPECT_EQ(followed.tasks[i].last_step, whole.tasks[i].last_step);
        EXPECT_EQ(followed.tasks[i].last_time_ns, whole.tasks[i].last_time_ns);
        EXPECT_EQ(followed.tasks[i].first_step_time_ns, whole.tasks[i].first_step_time_ns);
        EXPECT_EQ(followed.tasks[i].pace.Pauses().size(), whole.tasks[i].pace.Pauses().size());
        ExpectSame(followed.tasks[i].tracks, whole.tasks[i].tracks);
      }
      ASSERT_EQ(followed.events.size(), whole.events.size());
      for (size_t i = 0; i < whole.events.size(); ++i) {
        EXPECT_EQ(followed.events[i].time_ns, whole.events[i].time_ns);
        EXPECT_EQ(followed.events[i].kind, whole.events[i].kind);
        EXPECT_EQ(followed.events[i].task, whole.events[i].task);
      }
      ASSERT_EQ(followed.chips.size(), whole.chips.size());
      for (size_t i = 0; i < whole.chips.size(); ++i) {
        ExpectSame(followed.chips[i].tracks, whole.chips[i].tracks);
      }
      ASSERT_EQ(followed.hosts.size(), whole.hosts.size());
      for (size_t i = 0; i < whole.hosts.size(); ++i) {
        ExpectSame(followed.hosts[i].tracks, whole.hosts[i].tracks);
        EXPECT_EQ(followed.hosts[i].agent->last_heard_ns, whole.hosts[i].agent->last_heard_ns);
      }
    }
  }
}

TEST(SyntheticFollowerTest, TracksAreThinnedOutAndCoverTheWholeAttempt) {
  const SyntheticFleet fleet({.tasks = 2}, {}, 2000);
  SyntheticFollower follower(fleet, 46);
  for (double t = 5; t < 2000; t += 5) (void)follower.At(t);
  const JobWindow& window = follower.At(2000);
  const std::vector<Point>& points = window.tasks[1].tracks.at(Signal::kLoss)[0].points;
  EXPECT_LE(points.size(), 46u);
  EXPECT_EQ(points.front().step, 0);
  EXPECT_GT(points.back().time_ns, SyntheticFleet::Time(1980));
  EXPECT_GT(window.tasks[0].tracks.at(Signal::kLoss)[0].points.size(), 200u);
}

}  // namespace
}  // namespace tacho::testing
