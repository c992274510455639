// When a row of the fleet is made again, and in which order the rows are.
#include "server/view/fleet_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/server/view/fleet_fixture.h"

namespace tacho::server::view {
namespace {

using conditions::Severity;
using ::testing::ElementsAre;
using ::testing::FieldsAre;

class FleetBoardTest : public FleetFixture {};

TEST_F(FleetBoardTest, OrdersJobsByHowSickTheyAre) {
  SetNow(4000);
  for (const std::string job : {"critical", "warning", "info", "running", "newer"}) {
    AddRow(job, job == "newer" ? 3999 : 3990);
  }
  AddRow("silent", 10);
  AddRow("ended", 3990);
  AddEnd("ended", 3990);
  SetConditions("critical", {{"Stalled", Severity::kCritical}}, 3980);
  SetConditions("warning", {{"Throttled", Severity::kWarning}}, 100);
  SetConditions("info", {{"HostClock", Severity::kInfo}}, 100);
  FleetBoard board(options_);
  EXPECT_THAT(Names(*Look(board)),
              ElementsAre("critical", "warning", "info", "newer", "running", "silent", "ended"));
}

TEST_F(FleetBoardTest, AmongEquallySevereOnesChipsTimesTimeDecides) {
  SetNow(4000);
  for (const std::string job : {"a", "b", "c", "d"}) AddRow(job, 3990);
  AddAttributes("b", {{"device_count", "100"}});
  AddAttributes("c", {{"device_count", "10"}});
  SetConditions("a", {{"Stalled", Severity::kCritical}}, 3500);  // 500 s, its chips unknown.
  SetConditions("b", {{"Stalled", Severity::kCritical}}, 3990);  // 1,000 chip seconds.
  SetConditions("c", {{"Stalled", Severity::kCritical}}, 3000);  // 10,000.
  SetConditions("d", {{"Stalled", Severity::kCritical}}, 3500);  // As a.
  FleetBoard board(options_);
  EXPECT_THAT(Names(*Look(board)), ElementsAre("c", "b", "a", "d"));
}

TEST_F(FleetBoardTest, TheWorstConditionsComeFirst) {
  AddRow("j", 0);
  SetConditions("j",
                {{"A", Severity::kInfo}, {"B", Severity::kCritical}, {"C", Severity::kWarning}}, 0);
  FleetBoard board(options_);
  std::vector<std::string> names;
  for (const auto& one : RowOf(*Look(board), "j").conditions) names.push_back(one->name);
  EXPECT_THAT(names, ElementsAre("B", "C", "A"));
}

TEST_F(FleetBoardTest, NothingNewIsTheSameFleet) {
  AddRow("j", 0);
  FleetBoard board(options_);
  const FleetPtr first = Look(board);
  SetNow(100);
  EXPECT_EQ(Look(board), first);
}

TEST_F(FleetBoardTest, BetweenLooksEverybodyGetsTheSame) {
  AddRow("j", 0);
  FleetBoard board(options_);
  const FleetPtr first = Look(board);
  AddAttributes("j", {{"tag.good", "1"}});
  EXPECT_EQ(Look(board), first);
  SetNow(1);
  EXPECT_NE(Look(board), first);
}

TEST_F(FleetBoardTest, MovingOnCountsOnlyNowAndThen) {
  AddRow("j", 0);
  FleetBoard board(options_);
  const FleetPtr first = Look(board);
  AddRow("j", 5);
  SetNow(5);
  EXPECT_EQ(Look(board), first);
  SetNow(10);
  const FleetPtr moved = Look(board);
  EXPECT_GT(moved->revision, first->revision);
  EXPECT_EQ(RowOf(*moved, "j").job.last_step(), 5);
  EXPECT_EQ(RowOf(*moved, "j").revision, moved->revision);
}

TEST_F(FleetBoardTest, AJobFallsSilentByTimeAlone) {
  AddRow("j", 0);
  FleetBoard board(options_);
  const FleetPtr first = Look(board);
  EXPECT_EQ(RowOf(*first, "j").job.state(), v1::JOB_STATE_RUNNING);
  SetNow(300);
  EXPECT_EQ(Look(board), first);
  SetNow(301);
  const FleetPtr later = Look(board);
  EXPECT_EQ(RowOf(*later, "j").job.state(), v1::JOB_STATE_SILENT);
  EXPECT_GT(RowOf(*later, "j").revision, first->revision);
}

TEST_F(FleetBoardTest, AnEndShowsAtOnceAndANewStartToo) {
  AddRow("j", 0);
  AddRow("other", 0);
  FleetBoard board(options_);
  Look(board);
  AddEnd("j", 0);
  SetNow(1);
  const FleetPtr ended = Look(board);
  EXPECT_EQ(RowOf(*ended, "j").job.state(), v1::JOB_STATE_ENDED);
  EXPECT_LT(RowOf(*ended, "other").revision, ended->revision);
  AddRow("j", 200);
  SetNow(200);
  EXPECT_EQ(RowOf(*Look(board), "j").job.state(), v1::JOB_STATE_RUNNING);
}

TEST_F(FleetBoardTest, AttributesAndMarksShowAtOnce) {
  AddRow("j", 0);
  FleetBoard board(options_);
  Look(board);
  AddAttributes("j", {{"tag.good", "1"}, {"user", "ana"}});
  SetNow(1);
  const FleetPtr tagged = Look(board);
  EXPECT_THAT(RowOf(*tagged, "j").job.marks().tags(), ElementsAre("good"));
  EXPECT_EQ(RowOf(*tagged, "j").outline->attributes.at("user"), "ana");
  AddAttributes("j", {{"tag.good", ""}});
  SetNow(2);
  EXPECT_FALSE(RowOf(*Look(board), "j").job.has_marks());
}

TEST_F(FleetBoardTest, AConditionShowsAtOnceAndGoesAtOnce) {
  AddRow("j", 0);
  FleetBoard board(options_);
  Look(board);
  SetConditions("j", {{"Stalled", Severity::kCritical}}, 0);
  SetNow(1);
  EXPECT_EQ(RowOf(*Look(board), "j").conditions.size(), 1u);
  auto gone = std::make_shared<conditions::JudgedCondition>(*conditions_.Of("j")[0]);
  gone->status = conditions::ConditionStatus::kUnknown;
  conditions_.Put("j", {}, {gone});
  SetNow(2);
  EXPECT_EQ(RowOf(*Look(board), "j").conditions.size(), 0u);
}

TEST_F(FleetBoardTest, MoreChangesThanTheBoardKeepsAreNotMissed) {
  AddRow("j", 0);
  FleetBoard board(options_);
  Look(board);
  SetConditions("j", {{"Stalled", Severity::kCritical}}, 0);
  auto other = std::make_shared<conditions::JudgedCondition>();
  other->job = "other";
  conditions_.Put("other", {other},
                  conditions::JobConditions(conditions::ConditionBoard::kMaxChanges, other));
  SetNow(1);
  EXPECT_EQ(RowOf(*Look(board), "j").conditions.size(), 1u);
}

TEST_F(FleetBoardTest, ASickJobRisesWithTime) {
  AddRow("few", 0);
  AddRow("many", 0);
  AddAttributes("many", {{"device_count", "50"}});
  SetConditions("few", {{"Stalled", Severity::kCritical}}, -100);
  SetConditions("many", {{"Stalled", Severity::kCritical}}, -1);
  FleetBoard board(options_);
  EXPECT_THAT(Names(*Look(board)), ElementsAre("few", "many"));  // 100 and 50 chip seconds.
  SetNow(20);
  EXPECT_THAT(Names(*Look(board)), ElementsAre("many", "few"));
}

TEST_F(FleetBoardTest, GoodputAndStepTimesComeFromTheirBoard) {
  for (int second = 0; second < 60; ++second) AddRow("j", second);
  SetNow(60);
  FleetBoard board(options_);
  EXPECT_EQ(RowOf(*Look(board), "j").goodput, nullptr);
  goodput_->Refresh();
  SetNow(71);
  const FleetPtr fleet = Look(board);
  ASSERT_NE(RowOf(*fleet, "j").goodput, nullptr);
  EXPECT_EQ(RowOf(*fleet, "j").goodput->step_times, std::vector<float>(60, 0.5F));
  // A ledger that says the same is no news.
  SetNow(200);
  goodput_->Refresh();
  EXPECT_EQ(Look(board), fleet);
}

TEST_F(FleetBoardTest, KeepsTheJobsWithTheNewestActivity) {
  AddRow("old", 0);
  AddRow("a", 10);
  AddRow("b", 10);
  SetNow(10);
  options_.max_jobs = 2;
  FleetBoard board(options_);
  EXPECT_THAT(Names(*Look(board)), ElementsAre("a", "b"));
  AddRow("old", 20);
  SetNow(20);
  EXPECT_THAT(Names(*Look(board)), ElementsAre("old", "a"));
}

TEST_F(FleetBoardTest, AJobOfWhichEverythingWasRefusedIsSilent) {
  refusals_.Add("refused", "too_old", 7, now_, [](limits::JobRefusal*) {});
  FleetBoard board(options_);
  const FleetPtr fleet = Look(board);
  EXPECT_THAT(Names(*fleet), ElementsAre("refused"));
  EXPECT_EQ(RowOf(*fleet, "refused").job.state(), v1::JOB_STATE_SILENT);
  EXPECT_EQ(RowOf(*fleet, "refused").job.refused_samples(), 7u);
  SetNow(25 * 3600);
  EXPECT_THAT(Names(*Look(board)), ElementsAre());
}

TEST_F(FleetBoardTest, CountsTheChipsOfJobsAndThoseThatAreIdle) {
  AddRow("on-host", 0);  // On host-0.
  AddRow("says-so", 0);
  AddAttributes("says-so", {{"device_count", "64"}});
  AddRow("absurd", 0);  // On host-0, too.
  AddAttributes("absurd", {{"device_count", "4294967295"}});
  AddChips("own", "host-0", 3, 0);
  AddChips("hosts", "host-0", 8, 0);
  AddChips("hosts", "host-1", 4, 0);
  AddChips("hosts", "host-gone", 16, -1000);
  FleetBoard board(options_);
  const FleetPtr fleet = Look(board);
  EXPECT_EQ(RowOf(*fleet, "on-host").chips, 8u);
  EXPECT_EQ(RowOf(*fleet, "says-so").chips, 64u);
  EXPECT_EQ(RowOf(*fleet, "absurd").chips, 8u) << "as if it had said nothing";
  EXPECT_EQ(RowOf(*fleet, "own").chips, 3u);
  EXPECT_EQ(RowOf(*fleet, "hosts").chips, 0u);
  EXPECT_EQ(fleet->chips_idle, 4u);
  const auto hosts_of = [](const Fleet& of) {
    std::vector<std::tuple<std::string, uint32_t, bool>> hosts;
    for (const auto& host : of.hosts) hosts.emplace_back(host.name(), host.chips(), host.used());
    return hosts;
  };
  EXPECT_THAT(hosts_of(*fleet),
              ElementsAre(FieldsAre("host-0", 8u, true), FieldsAre("host-1", 4u, false),
                          FieldsAre("host-gone", 0u, false)));
  // All fall silent but the hosts.
  AddChips("hosts", "host-0", 8, 400);
  AddChips("hosts", "host-1", 4, 400);
  SetNow(400);
  const FleetPtr later = Look(board);
  EXPECT_EQ(later->chips_idle, 12u);
  EXPECT_THAT(hosts_of(*later),
              ElementsAre(FieldsAre("host-0", 8u, false), FieldsAre("host-1", 4u, false),
                          FieldsAre("host-gone", 0u, false)));
}

TEST_F(FleetBoardTest, KeepsNoLargeOutlineInMemory) {
  AddRow("j", 0);
  AddAttributes("j", {{"config", std::string(4000, 'x')}});
  FleetBoard board(options_);
  EXPECT_NE(RowOf(*Look(board), "j").outline, nullptr);  // The marks are merged: 8,000 bytes.
  AddAttributes("j", {{"more", std::string(1000, 'x')}});
  SetNow(1);
  EXPECT_EQ(RowOf(*Look(board), "j").outline, nullptr);
}

}  // namespace
}  // namespace tacho::server::view
