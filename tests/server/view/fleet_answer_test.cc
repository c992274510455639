// The answer about the fleet: filters, rights, limits, and changes since a revision.
#include "server/view/fleet_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/view/fleet_row.h"
#include "tests/server/view/fleet_fixture.h"

namespace tacho::server::view {
namespace {

using conditions::Severity;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

security::Rights ReaderOf(const std::string& pattern) {
  security::Rights::Options options;
  options.name = "reader";
  options.read = true;
  options.jobs = std::make_shared<const RE2>(pattern);
  return security::Rights(options);
}

std::vector<std::string> JobsOf(const v1::FleetResponse& response) {
  std::vector<std::string> names;
  for (const v1::FleetJob& job : response.jobs()) names.push_back(job.job().name());
  return names;
}

class FleetAnswerTest : public FleetFixture {
 protected:
  FleetAnswerTest() {
    options_.look_every = absl::ZeroDuration();
    board_ = std::make_unique<FleetBoard>(options_);
  }

  v1::FleetResponse Ask(const v1::FleetRequest& request,
                        const security::Rights& rights = *security::Rights::Everything(),
                        uint64_t salt = 1) {
    v1::FleetResponse response;
    const auto plan = MakeFleetPlan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return response;
    const absl::Status status =
        AnswerFleet(*store_, *Look(*board_), *plan, rights, salt, control_, &answered_, &response);
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }
  v1::FleetResponse AskSince(const v1::FleetResponse& before, v1::FleetRequest request = {}) {
    request.set_since_revision(before.revision());
    return Ask(request);
  }

  std::unique_ptr<FleetBoard> board_;
  AnsweredJobs answered_;
};

TEST_F(FleetAnswerTest, FiltersAsListJobsDoes) {
  for (const std::string job : {"a1", "a2", "b1"}) AddRow(job, 0);
  AddAttributes("a2", {{"user", "ana"}, {"group", "g"}, {"tag.good", "1"}});
  AddEnd("b1", 0);
  v1::FleetRequest request;
  request.set_name_pattern("a.*");
  EXPECT_THAT(JobsOf(Ask(request)), ElementsAre("a1", "a2"));
  request.add_tags("good");
  EXPECT_THAT(JobsOf(Ask(request)), ElementsAre("a2"));
  request.Clear();
  request.add_states(v1::JOB_STATE_ENDED);
  EXPECT_THAT(JobsOf(Ask(request)), ElementsAre("b1"));
  request.Clear();
  request.set_group("g");
  EXPECT_THAT(JobsOf(Ask(request)), ElementsAre("a2"));
  request.Clear();
  auto* matcher = request.add_matchers();
  matcher->set_label("user");
  matcher->set_op(v1::Matcher::OP_NOT_EQUAL);
  matcher->set_value("ana");
  EXPECT_THAT(JobsOf(Ask(request)), ElementsAre("a1", "b1"));
  matcher->set_label("host");
  matcher->set_op(v1::Matcher::OP_EQUAL);
  matcher->set_value("host-1");
  EXPECT_THAT(JobsOf(Ask(request)), IsEmpty());
}

TEST_F(FleetAnswerTest, LaterItHasOnlyWhatChanged) {
  AddRow("a", 0);
  AddRow("b", 0);
  const auto first = Ask({});
  EXPECT_TRUE(first.complete());
  const auto quiet = AskSince(first);
  EXPECT_FALSE(quiet.complete());
  EXPECT_THAT(JobsOf(quiet), IsEmpty());
  EXPECT_EQ(quiet.totals().jobs(), 2u);
  EXPECT_LT(quiet.ByteSizeLong(), 100u);
  AddAttributes("b", {{"tag.good", "1"}});
  AddRow("c", 0);
  const auto changed = AskSince(quiet);
  EXPECT_FALSE(changed.complete());
  EXPECT_THAT(JobsOf(changed), ElementsAre("b", "c"));
  EXPECT_THAT(JobsOf(AskSince(first)), ElementsAre("b", "c"));
  EXPECT_THAT(JobsOf(AskSince(changed)), IsEmpty());
}

TEST_F(FleetAnswerTest, JobsThatNoLongerMatchAreGone) {
  AddRow("a", 0);
  AddRow("b", 0);
  AddRow("never", 0);
  AddAttributes("a", {{"tag.good", "1"}});
  AddAttributes("b", {{"tag.good", "1"}});
  v1::FleetRequest request;
  request.add_tags("good");
  const auto first = Ask(request);
  AddAttributes("b", {{"tag.good", ""}});
  AddAttributes("never", {{"user", "ana"}});
  const auto later = AskSince(first, request);
  EXPECT_FALSE(later.complete());
  EXPECT_THAT(JobsOf(later), IsEmpty());
  EXPECT_THAT(later.gone(), ElementsAre("b"));
  EXPECT_THAT(AskSince(later, request).gone(), IsEmpty());
}

TEST_F(FleetAnswerTest, AJobThatFallsSilentIsGoneForThoseWhoWatchRunningOnes) {
  AddRow("a", 0);
  v1::FleetRequest request;
  request.add_states(v1::JOB_STATE_RUNNING);
  const auto first = Ask(request);
  SetNow(301);
  const auto later = AskSince(first, request);
  EXPECT_THAT(later.gone(), ElementsAre("a"));
  EXPECT_EQ(later.totals().jobs(), 0u);
}

TEST_F(FleetAnswerTest, WhoeverMovesUpIntoTheLimitIsSentThoughUnchanged) {
  for (const std::string job : {"a", "b", "c"}) AddRow(job, 0);
  v1::FleetRequest request;
  request.set_max_jobs(2);
  const auto first = Ask(request);
  EXPECT_THAT(JobsOf(first), ElementsAre("a", "b"));
  EXPECT_EQ(first.left_out(), 1u);
  EXPECT_EQ(first.totals().jobs(), 3u);
  AddEnd("a", 0);
  const auto later = AskSince(first, request);
  EXPECT_THAT(JobsOf(later), ElementsAre("c"));
  EXPECT_THAT(later.gone(), ElementsAre("a"));
}

TEST_F(FleetAnswerTest, RevisionsOfAnotherQuestionReaderOrProcessAreNotKnown) {
  AddRow("a", 0);
  AddRow("b", 0);
  const auto first = Ask({});
  v1::FleetRequest other;
  other.set_since_revision(first.revision());
  other.set_name_pattern("b");
  EXPECT_TRUE(Ask(other).complete());
  v1::FleetRequest same;
  same.set_since_revision(first.revision());
  EXPECT_FALSE(Ask(same).complete());
  EXPECT_TRUE(Ask(same, ReaderOf("b")).complete());
  EXPECT_TRUE(Ask(same, *security::Rights::Everything(), 2).complete());
  same.set_since_revision(first.revision() + (uint64_t{1} << 40));
  EXPECT_TRUE(Ask(same).complete());
}

TEST_F(FleetAnswerTest, AReaderSeesAndCountsOnlyItsJobs) {
  AddRow("mine", 0);
  AddRow("theirs", 0);
  AddAttributes("mine", {{"device_count", "2"}});
  AddAttributes("theirs", {{"device_count", "5"}});
  AddChips("hosts", "host-7", 4, 0);
  SetConditions("theirs", {{"Stalled", Severity::kCritical}}, 0);
  const auto rights = ReaderOf("mine");
  const auto seen = Ask({}, rights);
  EXPECT_THAT(JobsOf(seen), ElementsAre("mine"));
  EXPECT_EQ(seen.totals().jobs(), 1u);
  EXPECT_EQ(seen.totals().chips(), 2u);
  EXPECT_EQ(seen.totals().critical(), 0u);
  EXPECT_FALSE(seen.totals().has_chips_idle());
  v1::FleetRequest later;
  later.set_since_revision(seen.revision());
  AddEnd("theirs", 0);
  EXPECT_THAT(Ask(later, rights).gone(), IsEmpty());
  EXPECT_EQ(Ask({}).totals().chips_idle(), 4u);
  v1::FleetRequest with_hosts;
  with_hosts.set_hosts(true);
  EXPECT_THAT(Ask(with_hosts, rights).hosts(), IsEmpty());
  const auto hosts = Ask(with_hosts).hosts();
  ASSERT_EQ(hosts.size(), 2);  // The jobs run on host-0, whose chips nobody records.
  EXPECT_EQ(hosts[0].chips(), 0u);
  EXPECT_TRUE(hosts[0].used());
  EXPECT_EQ(hosts[1].name(), "host-7");
  EXPECT_EQ(hosts[1].chips(), 4u);
  EXPECT_FALSE(hosts[1].used());
  EXPECT_THAT(Ask({}).hosts(), IsEmpty());
}

TEST_F(FleetAnswerTest, TotalsCountByStateAndSeverity) {
  for (int second = 3940; second <= 4000; ++second) AddRow("critical", second);
  AddRow("warning", 4000);
  AddRow("well", 4000);
  AddRow("silent", 0);
  AddRow("ended", 3999);
  AddEnd("ended", 3999);
  AddAttributes("critical", {{"device_count", "8"}});
  AddAttributes("well", {{"device_count", "2"}});
  AddAttributes("ended", {{"device_count", "100"}});
  SetConditions("critical", {{"A", Severity::kCritical}, {"B", Severity::kWarning}}, 3990);
  SetConditions("warning", {{"B", Severity::kWarning}}, 3990);
  SetConditions("ended", {{"TrainerExited", Severity::kCritical}}, 3990);
  SetNow(4000);
  goodput_->Refresh();
  const auto totals = Ask({}).totals();
  EXPECT_EQ(totals.jobs(), 5u);
  EXPECT_EQ(totals.running(), 3u);
  EXPECT_EQ(totals.silent(), 1u);
  EXPECT_EQ(totals.ended(), 1u);
  EXPECT_EQ(totals.critical(), 1u);
  EXPECT_EQ(totals.warning(), 1u);
  EXPECT_EQ(totals.chips(), 10u);
  EXPECT_EQ(totals.chips_sick(), 8u);
  EXPECT_GT(totals.goodput_ratio(), 0.5);
  EXPECT_GT(totals.wall_seconds(), 0);
  EXPECT_DOUBLE_EQ(totals.goodput_ratio(), totals.productive_seconds() / totals.wall_seconds());
}

TEST_F(FleetAnswerTest, ARowHasThreeConditionsItsAttributesAndItsStepTimes) {
  for (int second = 0; second < 100; ++second) AddRow("j", second, /*attempt=*/3);
  AddAttributes("j", {{"user", "ana"}, {"secret", "x"}, {"note", "mine"}}, /*attempt=*/3);
  SetConditions("j",
                {{"A", Severity::kInfo},
                 {"B", Severity::kCritical},
                 {"C", Severity::kWarning},
                 {"D", Severity::kInfo}},
                10);
  SetNow(100);
  goodput_->Refresh();
  v1::FleetRequest request;
  request.set_spark_points(25);
  for (const char* name : {"user", "note", "absent"}) request.add_attributes(name);
  const auto response = Ask(request);
  ASSERT_EQ(response.jobs_size(), 1);
  const v1::FleetJob& job = response.jobs(0);
  EXPECT_EQ(job.attempt(), 3u);
  EXPECT_EQ(job.conditions_true(), 4u);
  ASSERT_EQ(job.conditions_size(), 3);
  EXPECT_EQ(job.conditions(0).condition(), "B");
  EXPECT_EQ(job.conditions(0).severity(), v1::CONDITION_SEVERITY_CRITICAL);
  EXPECT_EQ(job.attributes_size(), 2);
  EXPECT_EQ(job.attributes().at("user"), "ana");
  EXPECT_EQ(job.attributes().at("note"), "mine");
  EXPECT_EQ(job.step_times_size(), 25);
  EXPECT_EQ(job.steps().step_time_median_seconds(), 0.5);
  EXPECT_TRUE(job.has_goodput_ratio());
  EXPECT_EQ(Ask({}).jobs(0).step_times_size(), 0);
}

TEST_F(FleetAnswerTest, AttributesOfALargeOutlineAreLookedUp) {
  AddRow("j", 0);
  AddAttributes("j", {{"config", std::string(4000, 'x')}, {"more", std::string(4000, 'y')}});
  ASSERT_EQ(RowOf(*Look(*board_), "j").outline, nullptr);
  v1::FleetRequest request;
  request.add_attributes("more");
  auto* matcher = request.add_matchers();
  matcher->set_label("config");
  matcher->set_op(v1::Matcher::OP_MATCHES);
  matcher->set_value("x+");
  const auto response = Ask(request);
  ASSERT_EQ(response.jobs_size(), 1);
  EXPECT_EQ(response.jobs(0).attributes().at("more"), std::string(4000, 'y'));
}

TEST_F(FleetAnswerTest, WrongRequestsNameTheField) {
  const auto refusal = [](auto change) {
    v1::FleetRequest request;
    change(&request);
    return std::string(MakeFleetPlan(request).status().message());
  };
  EXPECT_THAT(refusal([](auto* r) { r->set_spark_points(121); }), HasSubstr("spark_points"));
  EXPECT_THAT(refusal([](auto* r) { r->set_max_jobs(10'001); }), HasSubstr("max_jobs"));
  EXPECT_THAT(refusal([](auto* r) {
                for (int i = 0; i < 21; ++i) r->add_attributes("a");
              }),
              HasSubstr("attributes"));
  EXPECT_EQ(refusal([](auto* r) {
              r->set_spark_points(120);
              r->set_max_jobs(10'000);
              for (int i = 0; i < 20; ++i) r->add_attributes("a");
            }),
            "");
}

TEST(SparklineTest, EachPointIsTheMedianOfEquallyMany) {
  EXPECT_THAT(Sparkline({}, 10), IsEmpty());
  EXPECT_THAT(Sparkline({1, 2}, 0), IsEmpty());
  EXPECT_THAT(Sparkline({1, 2, 3}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Sparkline({1, 9, 2, 5, 6, 100}, 2), ElementsAre(2, 6));
  // The oldest are left out where they do not fill a point.
  EXPECT_THAT(Sparkline({77, 1, 1, 9, 3, 3, 8}, 2), ElementsAre(3));
  EXPECT_THAT(Sparkline({7, 1, 2, 2, 8}, 3), ElementsAre(1, 2));
  const std::vector<float> many(1000, 1.0F);
  EXPECT_EQ(Sparkline(many, 120).size(), 111u);
}

TEST(AnsweredJobsTest, RemembersTheSameJobsOverManyRevisions) {
  AnsweredJobs answered;
  answered.Remember("q", 1, {"a"});
  answered.Remember("q", 5, {"a"});
  answered.Remember("q", 6, {"a", "b"});
  EXPECT_THAT(*answered.Find("q", 3), ElementsAre("a"));
  EXPECT_THAT(*answered.Find("q", 6), ElementsAre("a", "b"));
  EXPECT_EQ(answered.Find("q", 7), nullptr);
  EXPECT_EQ(answered.Find("other", 3), nullptr);
}

TEST(AnsweredJobsTest, ForgetsTheOldestAnswersOfAQuestion) {
  AnsweredJobs answered;
  for (uint64_t i = 1; i <= 9; ++i) answered.Remember("q", i, {std::to_string(i)});
  EXPECT_EQ(answered.Find("q", 1), nullptr);
  EXPECT_NE(answered.Find("q", 2), nullptr);
}

TEST(AnsweredJobsTest, ForgetsWhatWasNotAskedForLately) {
  AnsweredJobs answered(10'000);
  answered.Remember("first", 1, JobNames(50, "name"));
  answered.Remember("second", 1, JobNames(50, "name"));
  EXPECT_NE(answered.Find("first", 1), nullptr);  // Used later than the second.
  for (int i = 0; i < 4; ++i) {
    answered.Remember(std::to_string(i), 1, JobNames(50, "name"));
    EXPECT_NE(answered.Find("first", 1), nullptr);
    EXPECT_LE(answered.bytes(), 10'000u);
  }
  EXPECT_EQ(answered.Find("second", 1), nullptr);
}

TEST(TrueOnesTest, OneThatNamesACulpritComesBeforeAnOlderOneThatDoesNot) {
  const auto condition = [](const char* name, Severity severity, int64_t since, bool names) {
    auto made = std::make_shared<conditions::JudgedCondition>();
    made->name = name;
    made->status = conditions::ConditionStatus::kTrue;
    made->finding.severity = severity;
    made->since_ns = since;
    if (names) made->finding.culprits.push_back({.host = "h7"});
    return made;
  };
  std::vector<std::string> names;
  for (const auto& one : TrueOnes({condition("Slower", Severity::kWarning, 1, false),
                                   condition("Straggling", Severity::kWarning, 3, true),
                                   condition("Throttled", Severity::kWarning, 2, true),
                                   condition("Stalled", Severity::kCritical, 9, false)})) {
    names.push_back(one->name);
  }
  EXPECT_THAT(names, ElementsAre("Stalled", "Throttled", "Straggling", "Slower"));
}

}  // namespace
}  // namespace tacho::server::view
