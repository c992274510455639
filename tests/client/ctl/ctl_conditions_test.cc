// tachoctl shows conditions in a command of their own, and beside jobs.
#include <limits>

#include "client/ctl/text/page_link.h"
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Condition Stalled() {
  v1::Condition condition;
  condition.set_job("gpt-hang");
  condition.set_condition("Stalled");
  condition.set_status(v1::CONDITION_STATUS_TRUE);
  condition.set_severity(v1::CONDITION_SEVERITY_CRITICAL);
  condition.set_reason("NoTaskAdvances");
  condition.set_message(
      "No task has advanced for 70 s, 12 times the p99 step time; tasks 4 to 7 on host-5 stopped "
      "first, at step 306.");
  condition.set_since_unix_ns(kStart + 30 * kSecond);
  condition.set_changed_unix_ns(kStart + 90 * kSecond);
  condition.set_judged_unix_ns(kStart + 99 * kSecond);
  condition.set_step(307);
  for (uint32_t task = 4; task < 8; ++task) {
    v1::ConditionCulprit& culprit = *condition.add_culprits();
    culprit.set_task(task);
    culprit.set_host("host-5");
    culprit.set_step(306);
  }
  v1::ConditionFigure& figure = *condition.add_figures();
  figure.set_name("silent_seconds");
  figure.set_value(70);
  figure.set_unit("s");
  return condition;
}

v1::Condition MemoryPressure() {
  v1::Condition condition;
  condition.set_job("vit");
  condition.set_attempt(2);
  condition.set_condition("MemoryPressure");
  condition.set_status(v1::CONDITION_STATUS_TRUE);
  condition.set_severity(v1::CONDITION_SEVERITY_WARNING);
  condition.set_message("Chip 1 of host-9 has 0.8 of 80 GiB left.");
  condition.set_changed_unix_ns(kStart);
  v1::ConditionCulprit& culprit = *condition.add_culprits();
  culprit.set_host("host-9");
  culprit.set_chip("1");
  culprit.set_metric("chip_hbm_used_bytes");
  return condition;
}

v1::Condition Judged(const std::string& name, v1::ConditionStatus status) {
  v1::Condition condition;
  condition.set_job("vit");
  condition.set_condition(name);
  condition.set_status(status);
  return condition;
}

class CtlConditionsTest : public CtlReadingTest {
 protected:
  CtlConditionsTest() {
    *fake_.conditions.add_conditions() = Judged("Stalled", v1::CONDITION_STATUS_FALSE);
    *fake_.conditions.add_conditions() = Judged("Plateau", v1::CONDITION_STATUS_UNKNOWN);
    *fake_.conditions.add_conditions() = MemoryPressure();
    *fake_.conditions.add_conditions() = Stalled();
  }
};

TEST_F(CtlConditionsTest, ShowsWhatHoldsWithPlaceStepAndSentence) {
  env_.width = 80;
  ASSERT_EQ(Run({"conditions"}), kOk) << Err();
  ExpectGolden("conditions_80.txt", Out());
  EXPECT_LE(Width(), 80u);
  EXPECT_THAT(Out(), AllOf(HasSubstr("host-5 task 4 (+3 more)"), HasSubstr("307"),
                           HasSubstr("1m 10s"), Not(HasSubstr("Plateau"))));
}

TEST_F(CtlConditionsTest, FitsANarrowTerminal) {
  env_.width = 40;
  ASSERT_EQ(Run({"conditions", "gpt-hang"}), kOk);
  ExpectGolden("conditions_40.txt", Out());
  EXPECT_LE(Width(), 40u);
  EXPECT_THAT(Out(), HasSubstr("step 307"));
}

TEST_F(CtlConditionsTest, AllShowsWhatDoesNotHoldToo) {
  ASSERT_EQ(Run({"conditions", "--all"}), kOk);
  ExpectGolden("conditions_all.txt", Out());
}

TEST_F(CtlConditionsTest, SaysWithWhichProfileAJobIsJudgedAndWhy) {
  v1::JobProfile& fast = *fake_.conditions.add_profiles();
  fast.set_job("gpt-hang");
  fast.set_profile("fast");
  fast.set_automatic(true);
  fast.set_reason("it records its phases, and pauses only in them");
  fast.set_since_unix_ns(kStart + 30 * kSecond);
  ASSERT_EQ(Run({"conditions", "gpt-hang"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("\ngpt-hang: profile fast, chosen by the collector 1m 10s ago: it "
                               "records its phases, and pauses only in them\n"));
  ASSERT_EQ(Run({"conditions"}), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("profile")));
  ASSERT_EQ(Run({"conditions", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"profiles\": ["), HasSubstr("\"automatic\": true"),
                           HasSubstr("\"since_unix_ns\": ")));
}

TEST_F(CtlConditionsTest, AsksForWhatIsWanted) {
  ASSERT_EQ(
      Run({"conditions", "--jobs", "vi.*", "--condition", "Stalled", "--condition", "Diverged"}),
      kOk);
  EXPECT_EQ(fake_.conditions_request.job_pattern(), "vi.*");
  EXPECT_THAT(fake_.conditions_request.conditions(), ElementsAre("Stalled", "Diverged"));
  ASSERT_EQ(Run({"conditions", "vit"}), kOk);
  EXPECT_EQ(fake_.conditions_request.job(), "vit");
}

TEST_F(CtlConditionsTest, SeverityLeavesLesserOnesOut) {
  ASSERT_EQ(Run({"conditions", "--severity", "critical", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("gpt-hang,0,Stalled,true,critical,NoTaskAdvances,"),
                           Not(HasSubstr("MemoryPressure"))));
}

TEST_F(CtlConditionsTest, JsonHasTheEvidence) {
  ASSERT_EQ(Run({"conditions", "-o", "json"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr(R"({"name": "silent_seconds", "value": 70, "unit": "s"})"),
                    HasSubstr(R"({"task": 4, "host": "host-5", "chip": null, "metric": null, )"
                              R"("step": 306, "score": 0})"),
                    HasSubstr("\"since\": null,\n      \"since_unix_ns\": null,"),
                    HasSubstr(R"("since": "2026-01-31T12:00:30.000000000Z")")));
}

TEST_F(CtlConditionsTest, ExitCodeTellsWhetherOneIsSoSevere) {
  EXPECT_EQ(Run({"conditions", "--fail-on", "critical"}), kThreshold);
  EXPECT_THAT(Out(), HasSubstr("Stalled"));
  fake_.conditions.mutable_conditions()->RemoveLast();
  EXPECT_EQ(Run({"conditions", "--fail-on", "critical"}), kOk);
  EXPECT_EQ(Run({"conditions", "--fail-on", "warning"}), kThreshold);
}

TEST_F(CtlConditionsTest, SaysThatAllIsWellAndWhatIsNotJudged) {
  fake_.conditions.mutable_conditions()->DeleteSubrange(2, 2);
  ASSERT_EQ(Run({"conditions"}), kOk);
  EXPECT_EQ(
      Out(),
      "No condition holds: 1 condition of 1 job is judged; 1 cannot be judged: --all says which\n");
  EXPECT_EQ(Run({"status", "vit"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("conditions: none; 1 condition is judged\n"));
  for (auto& one : *fake_.conditions.mutable_conditions()) {
    one.set_status(v1::CONDITION_STATUS_UNKNOWN);
  }
  ASSERT_EQ(Run({"conditions"}), kOk);
  EXPECT_EQ(Out(), "No condition of 1 job can be judged: --all says why\n");
  EXPECT_EQ(Run({"status", "vit"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("conditions: none can be judged yet\n"));
  fake_.conditions.clear_conditions();
  EXPECT_EQ(Run({"conditions", "vit"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("vit is not judged"));
}

TEST_F(CtlConditionsTest, WrongFlagsNameTheRemedy) {
  const auto error = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "conditions");
    EXPECT_EQ(Run(flags), kUsage);
    return Err();
  };
  EXPECT_THAT(error({"vit", "--jobs", "v.*"}), HasSubstr("give one"));
  EXPECT_THAT(error({"--condition", "Stalld"}), HasSubstr("Stalled"));
  EXPECT_THAT(error({"--severity", "high"}), HasSubstr("info, warning, critical"));
  EXPECT_THAT(error({"--watch", "--fail-on", "info"}), HasSubstr("give one"));
  EXPECT_THAT(error({"--for", "1m"}), HasSubstr("--watch"));
  EXPECT_THAT(error({"--watch", "--for", "soon"}), HasSubstr("--for"));
}

TEST_F(CtlConditionsTest, RefusalIsPassedOn) {
  fake_.conditions_status = {grpc::StatusCode::INVALID_ARGUMENT, "job_pattern: missing )"};
  EXPECT_EQ(Run({"conditions", "--jobs", "("}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("job_pattern: missing )"));
}

TEST_F(CtlConditionsTest, HostileTextCannotSteerTheTerminal) {
  fake_.conditions.mutable_conditions(3)->set_message("a\x1b[2Jb\nc");
  ASSERT_EQ(Run({"conditions"}), kOk);
  EXPECT_THAT(Out(), AllOf(Not(HasSubstr("\x1b")), HasSubstr("a?[2Jb?c")));
}

v1::WatchConditionsResponse Told(const std::vector<v1::Condition>& conditions, bool live) {
  v1::WatchConditionsResponse message;
  for (const v1::Condition& condition : conditions) *message.add_conditions() = condition;
  message.set_live(live);
  return message;
}

// A new connection sends everything again: only what changed is printed.
TEST_F(CtlConditionsTest, WatchPrintsEachChangeOnce) {
  v1::Condition over = Stalled();
  over.set_status(v1::CONDITION_STATUS_FALSE);
  over.clear_severity();
  over.clear_culprits();
  over.set_message("Tasks advance again.");
  v1::Condition later = Stalled();
  later.set_judged_unix_ns(kStart + 120 * kSecond);
  const v1::Condition never = Judged("Diverged", v1::CONDITION_STATUS_FALSE);
  fake_.condition_watches = {{Told({Stalled(), never}, true)},
                             {Told({later, never}, true), Told({over}, false)}};
  ASSERT_EQ(Run({"conditions", "--watch", "--for", "3s"}), kOk) << Err();
  EXPECT_EQ(Out(), "12:01:30 gpt-hang Stalled critical step 307 host-5 task 4 (+3 more): " +
                       Stalled().message() +
                       "\n"
                       "12:01:30 gpt-hang Stalled over: Tasks advance again.\n");
  EXPECT_THAT(Err(), HasSubstr("lost the collector: draining; trying again"));
}

TEST_F(CtlConditionsTest, WatchedJsonIsAnObjectALine) {
  fake_.condition_watches = {{Told({Stalled(), MemoryPressure()}, true)}};
  ASSERT_EQ(Run({"conditions", "--watch", "--for", "500ms", "-o", "json"}), kOk) << Err();
  const std::string out = Out();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  EXPECT_THAT(out, HasSubstr("{\"job\": \"gpt-hang\", \"attempt\": 0, "));
}

TEST_F(CtlConditionsTest, StatusShowsThemAboveTheTasks) {
  fake_.job.mutable_job()->set_name("gpt-hang");
  fake_.job.mutable_job()->set_last_seen_unix_ns(kStart + 99 * kSecond);
  fake_.job.mutable_job()->set_first_seen_unix_ns(kStart);
  v1::Task& task = *fake_.job.add_tasks();
  task.set_task(4);
  task.set_host("host-5");
  task.set_last_seen_unix_ns(kStart + 30 * kSecond);
  fake_.page_url = "http://127.0.0.1:7412/ui/";
  env_.width = 80;
  ASSERT_EQ(Run({"status", "gpt-hang"}), kOk) << Err();
  ExpectGolden("status_conditions.txt", Out());
  ASSERT_EQ(Run({"status", "gpt-hang", "-o", "json"}), kOk);
  ExpectGolden("status.json", Out());
  EXPECT_THAT(Out(), HasSubstr("\"condition\": \"Stalled\",\n      \"status\": \"true\","));
  fake_.conditions_status = {grpc::StatusCode::UNIMPLEMENTED, "an older collector"};
  ASSERT_EQ(Run({"status", "gpt-hang"}), kOk) << "worth showing without";
  EXPECT_THAT(Out(), Not(HasSubstr("conditions")));
  EXPECT_THAT(Out(), HasSubstr("page:       http://127.0.0.1:7412/ui/#/job/gpt-hang\n"));
  fake_.page_url = "";
  ASSERT_EQ(Run({"status", "gpt-hang"}), kOk) << "without a page";
  EXPECT_THAT(Out(), Not(HasSubstr("page")));
}

TEST(PageLinkTest, AnyNameFitsIntoALink) {
  EXPECT_EQ(JobLink("https://t.example/ui/", "vision-moe_3", "LossSpike"),
            "https://t.example/ui/#/job/vision-moe_3?v=LossSpike");
  EXPECT_EQ(JobLink("https://t.example/ui/", "a/b ?#%\x1b\u00e9", ""),
            "https://t.example/ui/#/job/a%2Fb%20%3F%23%25%1B%C3%A9");
  EXPECT_EQ(JobLink("", "a", "Stalled"), "");
}

TEST(PageLinkTest, AnotherMachinesLoopbackIsNoLink) {
  EXPECT_EQ(ReachablePage("http://127.0.0.1:7412/ui/", "localhost:7411"),
            "http://127.0.0.1:7412/ui/");
  EXPECT_EQ(ReachablePage("http://127.0.0.1:7412/ui/", "collector.example:7411"), "");
  EXPECT_EQ(ReachablePage("http://[::1]:7412/ui/", "10.0.0.7:7411"), "");
  EXPECT_EQ(ReachablePage("https://tacho.example/ui/", "10.0.0.7:7411"),
            "https://tacho.example/ui/");
  EXPECT_EQ(ReachablePage("", "10.0.0.7:7411"), "");
}

TEST_F(CtlConditionsTest, JobsNameThem) {
  for (const char* name : {"gpt-hang", "well"}) {
    v1::Job& job = fake_.jobs.emplace_back();
    job.set_name(name);
    job.set_state(v1::JOB_STATE_RUNNING);
  }
  fake_.conditions.mutable_conditions()->DeleteSubrange(0, 2);
  ASSERT_EQ(Run({"jobs"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("CONDITIONS"), HasSubstr("Stalled=critical")));
  EXPECT_THAT(fake_.conditions_request.statuses(), ElementsAre(v1::CONDITION_STATUS_TRUE));
  ASSERT_EQ(Run({"jobs", "-o", "json"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("\"conditions\": {\n        \"Stalled\": \"critical\"\n      }"),
                    HasSubstr("\"conditions\": {}")));
}

}  // namespace
}  // namespace tacho::ctl
