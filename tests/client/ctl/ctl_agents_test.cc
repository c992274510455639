// tachoctl shows agents from their own metrics.
#include <limits>

#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = kStart + 100 * kSecond;  // As the fixture has it.

class CtlAgentsTest : public CtlReadingTest {
 protected:
  CtlAgentsTest() {
    AddAgent("host-1", "agent-one", kNow - 4 * kSecond);
    AddSource("host-1", "host", kNow - 4 * kSecond, true);
    AddSource("host-1", "tpu", kNow - 4 * kSecond, false);
    // 200 s of failure, again in 16 s, both at the time of the row.
    Add("host-1", "tacho_agent_source_failing", kNow - 4 * kSecond, 1,
        {{"source", "tpu"}, {"reason", "UNAVAILABLE"}});
    Add("host-1", "tacho_agent_source_failing_seconds", kNow - 4 * kSecond, 196,
        {{"source", "tpu"}});
    Add("host-1", "tacho_agent_source_retry_seconds", kNow - 4 * kSecond, 16, {{"source", "tpu"}});
    AddFailure("host-1", "tpu", "an older reason");
    AddFailure("host-1", "tpu", "nobody answers on port 8431 of this machine; is libtpu loaded?");
    AddFailure("host-2", "tpu", "another machine's reason");

    v1::Job& job = fake_.jobs.emplace_back();
    job.set_name("bert-base");
    *fake_.job.mutable_job() = job;
    for (const uint32_t task : {0u, 1u, 2u, 5u}) AddTask("host-1", task, v1::JOB_STATE_RUNNING);
    AddTask("host-1", 9, v1::JOB_STATE_SILENT);
    AddTask("host-3", 6, v1::JOB_STATE_RUNNING);
  }

  void Add(const std::string& host, const std::string& metric, int64_t time_ns, double value,
           const std::vector<std::pair<std::string, std::string>>& labels = {}) {
    v1::LatestSample& sample = *fake_.latest.add_samples();
    sample.mutable_series()->mutable_metric()->set_name(metric);
    sample.mutable_series()->set_job("hosts");
    sample.mutable_series()->set_host(host);
    sample.set_time_unix_ns(time_ns);
    sample.set_value(value);
    for (const auto& [name, text] : labels) {
      v1::Label& label = *sample.mutable_series()->add_labels();
      label.set_name(name);
      label.set_value(text);
    }
  }
  void AddAgent(const std::string& host, const std::string& id, int64_t time_ns) {
    Add(host, "tacho_agent_info", time_ns, 1, {{"agent_id", id}, {"version", "0.1.0"}});
    Add(host, "tacho_agent_spool_messages", time_ns, 1234);
    Add(host, "tacho_agent_spool_bytes", time_ns, 500000);
    Add(host, "tacho_agent_rows_total", time_ns, 98765);
    Add(host, "tacho_agent_lost_rows_total", time_ns, 10);
    Add(host, "tacho_agent_resident_memory_bytes", time_ns, 2.5e7);
  }
  void AddSource(const std::string& host, const std::string& source, int64_t time_ns, bool up) {
    Add(host, "tacho_agent_source_up", time_ns, up ? 1 : 0, {{"source", source}});
    Add(host, "tacho_agent_source_polls_total", time_ns, 50, {{"source", source}});
    Add(host, "tacho_agent_source_failures_total", time_ns, up ? 0 : 20, {{"source", source}});
    Add(host, "tacho_agent_source_lost_rows_total", time_ns, 3, {{"source", source}});
  }
  void AddFailure(const std::string& host, const std::string& source, const std::string& reason) {
    v1::RecordedEvent& event = *fake_.events.add_events();
    event.mutable_source()->set_host(host);
    event.set_kind("source_failed");
    event.set_message(reason);
    (*event.mutable_fields())["source"] = source;
  }
  void AddTask(const std::string& host, uint32_t number, v1::JobState state) {
    v1::Task& task = *fake_.job.add_tasks();
    task.set_host(host);
    task.set_task(number);
    task.set_state(state);
  }
};

TEST_F(CtlAgentsTest, ShowsWhatWaitsWhatWasLostTheTasksAndWhySourcesFail) {
  env_.width = 100;
  ASSERT_EQ(Run({"agents"}), kOk) << Err();
  ExpectGolden("agents_100.txt", Out());
  EXPECT_LE(Width(), 100u);
  EXPECT_THAT(Out(), AllOf(HasSubstr("1 of 2 fails"), HasSubstr("bert-base 0-2,5"),
                           HasSubstr("tpu fails for 3m 20s, again in 12s: UNAVAILABLE: nobody"),
                           Not(HasSubstr("older reason")), Not(HasSubstr("another machine"))));
  EXPECT_EQ(fake_.latest_request.selector().job(), "hosts");
  EXPECT_EQ(fake_.events_request.kind(), "source_failed");
  EXPECT_EQ(fake_.events_request.time().begin_unix_ns(), kNow - 201 * kSecond);
  EXPECT_THAT(fake_.jobs_request.states(), Contains(v1::JOB_STATE_RUNNING));
}

TEST_F(CtlAgentsTest, SaysWhatTheCollectorRefusedAndWhatToDo) {
  Add("host-1", "tacho_agent_refused_samples_total", kNow - 4 * kSecond, 114'128,
      {{"reason", "too_old"}});
  Add("host-1", "tacho_agent_refused_samples_total", kNow - 4 * kSecond, 0, {{"reason", "future"}});
  ASSERT_EQ(Run({"agents"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("the collector refused 114,128 samples as too_old"),
                           HasSubstr("storage.retention"), Not(HasSubstr("future"))));
  ASSERT_EQ(Run({"agents", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("\"reason\": \"too_old\""));
}

TEST_F(CtlAgentsTest, SaysByHowMuchAClockIsCertainlyOff) {
  Add("host-1", "tacho_agent_clock_offset_seconds", kNow - 4 * kSecond, -7200);
  Add("host-1", "tacho_agent_clock_uncertainty_seconds", kNow - 4 * kSecond, 0.002);
  Add("host-1", "host_clock_synchronized", kNow - 90 * kSecond, 0);
  Add("no-agent", "host_clock_synchronized", kNow, 0);
  AddAgent("host-2", "host-2", kNow);
  Add("host-2", "tacho_agent_clock_offset_seconds", kNow, 5);
  Add("host-2", "tacho_agent_clock_uncertainty_seconds", kNow, 4.5);
  ASSERT_EQ(Run({"agents"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("its clock is 2h behind the collector's; no time service"),
                           Not(HasSubstr("5s ahead")), Not(HasSubstr("no-agent"))));
  ASSERT_EQ(Run({"agents", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"clock_offset_seconds\": -7200"),
                           HasSubstr("\"clock_uncertainty_seconds\": 0.002"),
                           HasSubstr("\"clock_synchronized\": false")));
  ASSERT_EQ(Run({"agents", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr(",-7200,0.002\r\n"));
}

TEST_F(CtlAgentsTest, WrapsReasonsInANarrowTerminal) {
  env_.width = 60;
  ASSERT_EQ(Run({"agents"}), kOk);
  ExpectGolden("agents_60.txt", Out());
}

TEST_F(CtlAgentsTest, JsonHasEachSource) {
  ASSERT_EQ(Run({"agents", "-o", "json"}), kOk);
  ExpectGolden("agents.json", Out());
}

TEST_F(CtlAgentsTest, CsvHasALineForEachSource) {
  ASSERT_EQ(Run({"agents", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("agent-one,host-1,0.1.0,failing,"),
                           HasSubstr("\"bert-base 0-2,5\",1234,500000,98765,16,25000000,host,ok,"),
                           HasSubstr(",tpu,failing,UNAVAILABLE,nobody answers")));
}

TEST_F(CtlAgentsTest, AgentThatIsNotHeardOfIsSilentAndThenLeftOut) {
  AddAgent("host-2", "host-2", kNow - 3700 * kSecond);
  AddSource("host-2", "host", kNow - 3700 * kSecond, true);
  ASSERT_EQ(Run({"agents"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("silent"), HasSubstr("1h 1m ago")));
  ASSERT_EQ(Run({"agents", "--silent-after", "2h"}), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("silent")));
  ASSERT_EQ(Run({"agents", "--seen", "1h"}), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("host-2")));
}

TEST_F(CtlAgentsTest, ReasonsAndSourcesOfTheNewestRowCountAndOldOnesAreForgotten) {
  AddSource("host-1", "gpu", kNow - 300 * kSecond, false);
  Add("host-1", "tacho_agent_source_failing", kNow - 300 * kSecond, 1,
      {{"source", "tpu"}, {"reason", "NOT_FOUND"}});
  // It worked at the newest row; what was said while it failed is a row older.
  AddSource("host-1", "rings", kNow - 4 * kSecond, true);
  Add("host-1", "tacho_agent_source_failing_seconds", kNow - 14 * kSecond, 5,
      {{"source", "rings"}});
  ASSERT_EQ(Run({"agents"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("1 of 3 fails"), HasSubstr("UNAVAILABLE"), Not(HasSubstr("gpu")),
                    Not(HasSubstr("NOT_FOUND")), Not(HasSubstr("rings fails"))));
  EXPECT_EQ(fake_.events_request.time().begin_unix_ns(), kNow - 201 * kSecond);
}

TEST_F(CtlAgentsTest, AgentThatIsTooOldToTellMuchIsShown) {
  fake_.latest.clear_samples();
  Add("host-1", "tacho_agent_resident_memory_bytes", kNow, 2.5e7);
  Add("host-1", "tacho_agent_source_up", kNow, 1, {{"source", "host"}});
  ASSERT_EQ(Run({"agents", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"agent\": null"), HasSubstr("\"lost_rows\": null"),
                           HasSubstr("\"state\": \"ok\"")));
}

TEST_F(CtlAgentsTest, NumbersThatNoAgentHasAreTheNearestThatFit) {
  const double huge = 1e300;
  Add("host-4", "tacho_agent_info", kNow, 1, {{"agent_id", "odd"}, {"version", "1"}});
  Add("host-4", "tacho_agent_rows_total", kNow, huge);
  Add("host-4", "tacho_agent_lost_rows_total", kNow, std::numeric_limits<double>::quiet_NaN());
  AddSource("host-4", "tpu", kNow, false);
  Add("host-4", "tacho_agent_source_failing_seconds", kNow, huge, {{"source", "tpu"}});
  Add("host-4", "tacho_agent_source_retry_seconds", kNow, huge, {{"source", "tpu"}});
  ASSERT_EQ(Run({"agents", "-o", "json"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("\"rows\": 18446744073709551615"));
  EXPECT_THAT(Out(), HasSubstr("\"since_unix_ns\": -7453511136854775808"));  // kNow - 2^63.
  EXPECT_THAT(Out(), HasSubstr("\"retry_unix_ns\": 9223372036854775807"));
}

TEST_F(CtlAgentsTest, FailingLeavesOutWhatIsWell) {
  AddAgent("host-2", "host-2", kNow);
  ASSERT_EQ(Run({"agents", "--failing"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("host-1"), Not(HasSubstr("host-2"))));
  fake_.latest.clear_samples();
  AddAgent("host-2", "host-2", kNow);
  EXPECT_EQ(Run({"agents", "--failing"}), kOk) << "all is well";
  EXPECT_EQ(Out(), "The one agent neither fails nor is silent\n");
  EXPECT_EQ(Err(), "");
  EXPECT_EQ(Run({"agents", "--failing", "-o", "json"}), kOk);
  EXPECT_EQ(Out(), "{\n  \"agents\": []\n}\n");
  AddAgent("host-3", "host-3", kNow);
  EXPECT_EQ(Run({"agents", "--failing"}), kOk);
  EXPECT_EQ(Out(), "None of 2 agents fails or is silent\n");
}

TEST_F(CtlAgentsTest, AsksForWhatIsWantedAndSaysWhereNothingIs) {
  fake_.latest.clear_samples();
  EXPECT_EQ(Run({"agents", "web-.*", "--job", "nodes"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("no agent matches 'web-.*' in job 'nodes' within 1d"));
  EXPECT_EQ(fake_.latest_request.selector().job(), "nodes");
  ASSERT_EQ(fake_.latest_request.selector().matchers_size(), 1);
  EXPECT_EQ(fake_.latest_request.selector().matchers(0).value(), "web-.*");
  EXPECT_EQ(Run({"agents", "--failing"}), kNothing) << "no agent is no good news";
}

TEST_F(CtlAgentsTest, WrongInputIsAnsweredWell) {
  EXPECT_EQ(Run({"agents", "--seen", "soon"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--seen 'soon'"));
  EXPECT_EQ(Run({"agents", "--silent-after", "-3"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--silent-after"));
  EXPECT_EQ(Run({"agents", "a", "b"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("'b' is one operand too many"));
  EXPECT_EQ(Run({"agents", "--faling"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--failing"));
}

TEST_F(CtlAgentsTest, NamesCannotSteerTheTerminal) {
  AddFailure("host-1", "tpu", "a \x1b[2J reason");
  ASSERT_EQ(Run({"agents"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("a ?[2J reason"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace tacho::ctl
