#include "server/conditions/job_profile.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conditions/condition_settings.h"
#include "tests/server/conditions/settings.h"
#include "tests/support/synthetic_window.h"

namespace tacho::server::conditions {
namespace {

using testing::Fault;
using testing::FaultKind;
using testing::FleetOptions;
using ::testing::HasSubstr;
using testing::SyntheticFleet;

constexpr double kHour = 3600;

// A record that looks at a fleet every 10 s.
class Watched {
 public:
  explicit Watched(const SyntheticFleet& fleet) : fleet_(&fleet) { fast_ = With("floor: 10s"); }

  void Go(double until_seconds, bool holding = false) {
    for (; at_ <= until_seconds; at_ += 10) {
      const Profile before = record_.profile().profile;
      record_.Update(fleet_->At(at_), fast_, holding);
      if (record_.profile().profile != before) ++changes_;
    }
  }
  // Goes on with another attempt or job, which began just then.
  void Follow(const SyntheticFleet& fleet) {
    fleet_ = &fleet;
    at_ = 0;
  }
  bool fast() const { return record_.profile().profile == Profile::kFast; }
  const JobProfile& profile() const { return record_.profile(); }
  int changes() const { return changes_; }

 private:
  const SyntheticFleet* fleet_;
  Progress::Stalled fast_;
  PhaseRecord record_;
  double at_ = 0;
  int changes_ = 0;
};

TEST(PhaseRecordTest, AJobThatPausesOnlyInItsPhasesIsFast) {
  const SyntheticFleet fleet({.tasks = 4, .checkpoint_seconds = 40, .eval_seconds = 90}, {});
  Watched watched(fleet);
  watched.Go(200);
  EXPECT_FALSE(watched.fast());
  EXPECT_THAT(watched.profile().reason, HasSubstr("no checkpoint"));
  watched.Go(320);
  EXPECT_THAT(watched.profile().reason, HasSubstr("less than 5 minutes"));
  watched.Go(500);
  EXPECT_TRUE(watched.fast()) << watched.profile().reason;
  EXPECT_TRUE(watched.profile().automatic);
  EXPECT_GT(watched.profile().since_ns, 0);
  watched.Go(kHour);
  EXPECT_EQ(watched.changes(), 1);
}

TEST(PhaseRecordTest, AJobThatRecordsNoPhasesStaysBalanced) {
  const SyntheticFleet fleet(
      {.tasks = 4, .checkpoint_seconds = 2, .eval_seconds = 3, .events = false}, {});
  Watched watched(fleet);
  watched.Go(kHour);
  EXPECT_FALSE(watched.fast());
  EXPECT_THAT(watched.profile().reason, HasSubstr("has recorded no checkpoint"));
}

TEST(PhaseRecordTest, ARecordedCheckpointExcusesNoUnrecordedPause) {
  // The event covers a part of the pause that is enough to leave it out of the pace.
  const SyntheticFleet fleet(
      {.tasks = 4}, {{.kind = FaultKind::kDataStall, .at_seconds = 1000, .until_seconds = 1030}});
  Watched watched(fleet);
  watched.Go(990);
  ASSERT_TRUE(watched.fast());
  watched.Go(1020);
  EXPECT_TRUE(watched.fast()) << "it is not over: a hang is judged with the profile of before";
  watched.Go(1060);
  EXPECT_FALSE(watched.fast());
  EXPECT_THAT(watched.profile().reason, HasSubstr("it paused for 31 s without a recorded phase"));
}

TEST(PhaseRecordTest, OnePauseCountsForAnHourAndTwoForADay) {
  const SyntheticFleet once(
      {.tasks = 2}, {{.kind = FaultKind::kDataStall, .at_seconds = 1000, .until_seconds = 1030}});
  Watched watched(once);
  watched.Go(1040 + kHour - 60);
  EXPECT_FALSE(watched.fast());
  watched.Go(1040 + kHour + 60);
  EXPECT_TRUE(watched.fast());
  EXPECT_EQ(watched.changes(), 3);

  const SyntheticFleet twice(
      {.tasks = 2},
      {{.kind = FaultKind::kDataStall, .at_seconds = 1000, .until_seconds = 1030},
       {.kind = FaultKind::kDataStall, .at_seconds = 2000, .until_seconds = 2030}},
      3 * kHour);
  Watched again(twice);
  again.Go(2.5 * kHour);
  EXPECT_FALSE(again.fast());
  EXPECT_EQ(again.changes(), 2);
  EXPECT_THAT(again.profile().reason, HasSubstr("it paused 2 times within a day"));
}

TEST(PhaseRecordTest, APauseNearTheLimitDoesNotMakeItFlap) {
  // Every 100 steps, 7 s that nothing explains: between the two shares of 10 s.
  FleetOptions options = {.tasks = 2, .eval_every = 400, .eval_seconds = 5};
  std::vector<Fault> faults;
  for (double at = 1000; at < kHour; at += 100) {
    faults.push_back({.kind = FaultKind::kDataStall, .at_seconds = at, .until_seconds = at + 5.5});
  }
  const SyntheticFleet fleet(options, faults);
  Watched watched(fleet);
  watched.Go(kHour);
  EXPECT_TRUE(watched.fast());
  EXPECT_EQ(watched.changes(), 1);
}

TEST(PhaseRecordTest, WhatIsKnownLastsOverAttempts) {
  const SyntheticFleet first({.tasks = 2}, {});
  const SyntheticFleet second({.attempt = 1, .tasks = 2, .checkpoint_every = 10000}, {});
  Watched watched(first);
  watched.Go(600);
  ASSERT_TRUE(watched.fast());
  watched.Follow(second);
  watched.Go(100);
  EXPECT_TRUE(watched.fast()) << watched.profile().reason;

  const SyntheticFleet paused(
      {.tasks = 2}, {{.kind = FaultKind::kDataStall, .at_seconds = 500, .until_seconds = 530}});
  Watched other(paused);
  other.Go(600);
  other.Follow(second);
  other.Go(900);
  EXPECT_FALSE(other.fast()) << "the pause is less than an hour ago";
}

TEST(PhaseRecordTest, AConditionThatHoldsKeepsItFastForAWhile) {
  const SyntheticFleet fleet(
      {.tasks = 2}, {{.kind = FaultKind::kDataStall, .at_seconds = 1000, .until_seconds = 1030}});
  Watched watched(fleet);
  watched.Go(990);
  watched.Go(1500, /*holding=*/true);
  EXPECT_TRUE(watched.fast());
  watched.Go(1700, /*holding=*/true);
  EXPECT_FALSE(watched.fast());
}

TEST(PhaseRecordTest, RowsThatAreFarApartAreNoPause) {
  const SyntheticFleet fleet({.tasks = 2, .log_every = 30}, {});
  Watched watched(fleet);
  watched.Go(kHour);
  EXPECT_TRUE(watched.fast()) << watched.profile().reason;
}

config::v1::Conditions Read(const std::string& yaml) { return With(yaml); }

absl::Duration HoldOf(const Detectors& detectors, const std::string& name) {
  for (const Detector& detector : detectors) {
    if (detector.name == name) return detector.hold_for;
  }
  return absl::InfiniteDuration();
}

TEST(ConditionSettingsTest, AProfileHasOtherDefaultsAndWhatTheFileGivesWins) {
  const auto settings = ConditionSettings::Create(Read(R"(
progress:
  stalled: {for: 10s}
jobs:
  - {pattern: "night-.*", profile: quiet, progress: {task_missing: {for: 1s}}}
)"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  const JobRules& general = (*settings)->Of("day");
  EXPECT_EQ(general.fixed, std::nullopt);
  EXPECT_EQ(HoldOf(general.With(Profile::kFast), "Stalled"), absl::Seconds(10)) << "given";
  EXPECT_EQ(HoldOf(general.With(Profile::kFast), "AgentSilent"), absl::ZeroDuration());
  EXPECT_EQ(HoldOf(general.With(Profile::kBalanced), "AgentSilent"), absl::Seconds(10));
  EXPECT_EQ(HoldOf(general.With(Profile::kQuiet), "AgentSilent"), absl::Minutes(1));
  EXPECT_EQ(general.fast.floor(), absl::ToInt64Nanoseconds(absl::Seconds(10)));

  const JobRules& night = (*settings)->Of("night-1");
  EXPECT_EQ(night.fixed, Profile::kQuiet);
  EXPECT_EQ(HoldOf(night.With(Profile::kQuiet), "TaskMissing"), absl::Seconds(1)) << "given";
  EXPECT_EQ(HoldOf(night.With(Profile::kQuiet), "Stalled"), absl::Seconds(10)) << "given beside";
  EXPECT_EQ(HoldOf(night.With(Profile::kQuiet), "AgentSilent"), absl::Minutes(1));
}

TEST(ConditionSettingsTest, AGivenFloorHoldsOnceThePausesAreKnown) {
  const SyntheticFleet fleet({.tasks = 4, .checkpoint_seconds = 1, .eval_seconds = 1},
                             {{.kind = FaultKind::kHang, .host = 1, .at_seconds = 4500}}, 5000);
  const auto stalled = [&](const std::string& yaml) {
    const auto settings = ConditionSettings::Create(Read(yaml));
    for (const Detector& detector : (*settings)->Of("a").With(Profile::kBalanced)) {
      if (detector.name == "Stalled") return detector.detect(fleet.At(4590)).present;
    }
    return false;
  };
  EXPECT_TRUE(stalled(""));
  EXPECT_FALSE(stalled("progress: {stalled: {floor: 2m}}")) << "though it is the default";
  EXPECT_TRUE(stalled("progress: {stalled: {floor: 2m, settled_floor: 30s}}"));
}

}  // namespace
}  // namespace tacho::server::conditions
