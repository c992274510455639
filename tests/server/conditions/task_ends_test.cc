// What ends of tasks do to the conditions of their job, with the detectors and defaults of the
// product, on a clock that is turned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/ingest/agent_ledger.h"
#include "tests/server/conditions/condition_engine_fixture.h"

namespace tacho::server::conditions {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TaskEndsTest : public ConditionEngineFixture {
 protected:
  void Start() { StartEngine(AllDetectors(config_.conditions())); }

  // One second after the other, in which these tasks write a step and agents report.
  void Train(int seconds, const std::vector<uint32_t>& tasks, uint32_t attempt = 0) {
    for (int i = 0; i < seconds; ++i) {
      ++step_;
      const double loss = 1000.0 - static_cast<double>(step_);  // It falls: no curve is odd.
      for (const uint32_t task : tasks) Append("job", task, step_, loss, attempt);
      for (auto& [host, stream] : streams_) stream.Heard(absl::ToUnixNanos(now_));
      Pass(absl::Seconds(1));
    }
  }
  void Wait(absl::Duration time) { Train(static_cast<int>(absl::ToInt64Seconds(time)), {}); }

  void End(uint32_t task, const std::string& kind, std::map<std::string, std::string> fields = {},
           uint32_t attempt = 0) {
    storage::Event event;
    event.source = {"job", task, attempt, "host-" + std::to_string(task)};
    event.time_ns = absl::ToUnixNanos(now_);
    event.kind = kind;
    event.fields = std::move(fields);
    Append(event);
  }
  void AgentReports(uint32_t task) {
    const std::string host = "host-" + std::to_string(task);
    streams_[host] = agents_.Open("agent of " + host, absl::ToUnixNanos(now_), std::nullopt);
    agents_.Serves(streams_[host], host);
  }

  std::map<std::string, ingest::AgentLedger::Stream> streams_;
  int64_t step_ = 0;
};

// Without the event the same job raises conditions, so the tests below are no empty promise.
TEST_F(TaskEndsTest, AJobThatStopsWithoutAnEndStalls) {
  Start();
  AgentReports(0);
  Train(60, {0});
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised Stalled", "raised TrainerSilent"));
}

TEST_F(TaskEndsTest, TenMinutesAfterAllTasksEndedNothingIsRaised) {
  Start();
  AgentReports(0);
  AgentReports(1);
  Train(60, {0, 1});
  End(0, "ended");
  End(1, "ended");
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), IsEmpty());
}

TEST_F(TaskEndsTest, ATrainerThatWasKilledHasExitedAndNothingElse) {
  Start();
  AgentReports(0);
  Train(60, {0});
  End(0, "exited", {{"signal", "9"}});
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited"));
  const auto exited = Condition("job", "TrainerExited");
  EXPECT_EQ(exited->finding.severity, Severity::kCritical);
  EXPECT_EQ(exited->finding.reason, "Signal");
  EXPECT_EQ(exited->finding.step, step_ - 600);
}

TEST_F(TaskEndsTest, ANewAttemptResolvesTheExit) {
  Start();
  AgentReports(0);
  Train(60, {0});
  End(0, "exited", {{"signal", "9"}});
  Wait(absl::Minutes(1));
  Train(60, {0}, /*attempt=*/1);
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited", "cleared TrainerExited"));
  End(0, "exited", {}, /*attempt=*/0);  // Late.
  Train(60, {0}, /*attempt=*/1);
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited", "cleared TrainerExited"));
}

TEST_F(TaskEndsTest, ATaskThatBeginsAgainInTheSameAttemptResolvesTheExitToo) {
  Start();
  AgentReports(0);
  Train(60, {0});
  End(0, "exited", {{"signal", "9"}});
  Wait(absl::Minutes(1));
  Train(10, {0});
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited", "cleared TrainerExited"));
  Wait(absl::Minutes(4));
  EXPECT_THAT(EventsOf("job"), Contains("raised Stalled")) << "it is judged again";
}

TEST_F(TaskEndsTest, ANewAttemptInTimeRaisesNothing) {
  Start();
  AgentReports(0);
  Train(60, {0});
  End(0, "exited", {{"signal", "9"}});
  Wait(absl::Seconds(20));
  Train(120, {0}, /*attempt=*/1);
  EXPECT_THAT(EventsOf("job"), IsEmpty());
}

TEST_F(TaskEndsTest, WhereOneTaskEndedTheOthersAreJudgedAsBefore) {
  Start();
  for (const uint32_t task : {0, 1, 2}) AgentReports(task);
  Train(60, {0, 1, 2});
  End(1, "ended");
  Train(240, {0, 2});  // Longer than any silence may last.
  EXPECT_THAT(EventsOf("job"), IsEmpty());
  Wait(absl::Minutes(4));  // The others hang.
  EXPECT_THAT(EventsOf("job"), Contains("raised Stalled"));
}

TEST_F(TaskEndsTest, WhereOneTaskExitedItAloneIsNamed) {
  Start();
  for (const uint32_t task : {0, 1, 2}) AgentReports(task);
  Train(60, {0, 1, 2});
  End(1, "exited", {{"exit_code", "1"}});
  Train(240, {0, 2});  // Longer than any silence may last.
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited"));
  const auto exited = Condition("job", "TrainerExited");
  EXPECT_EQ(exited->finding.severity, Severity::kWarning) << "the others train";
  ASSERT_EQ(exited->finding.culprits.size(), 1u);
  EXPECT_EQ(exited->finding.culprits[0].task, 1u);
  EXPECT_EQ(exited->finding.culprits[0].host, "host-1");
}

TEST_F(TaskEndsTest, AnExitBeforeTheFirstRowCounts) {
  Start();
  End(0, "attempt_started");
  Pass(absl::Seconds(10));
  End(0, "exited", {{"exception", "ImportError"}, {"exit_code", "1"}});
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited"));
}

TEST_F(TaskEndsTest, EndsOutliveARestartOfTheCollector) {
  Start();
  Train(60, {0, 1});
  End(0, "ended");
  End(1, "exited", {{"signal", "11"}});
  Wait(absl::Minutes(1));
  RestartCollector(AllDetectors(config_.conditions()));
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), ElementsAre("raised TrainerExited"));
}

// Speed and the health of hosts are judged only where a process lives.
TEST_F(TaskEndsTest, DetectorsOfRunningTasksSeeNoOthers) {
  std::vector<std::optional<uint32_t>> running;
  std::vector<std::string> hosts;
  std::vector<std::optional<uint32_t>> all;
  Detector of_running = {.name = "Running", .judges = Judges::kRunning};
  of_running.detect = [&](const JobWindow& window) {
    running.clear();
    hosts.clear();
    for (const TaskWindow& task : window.tasks) running.push_back(task.task);
    for (const HostWindow& host : window.hosts) hosts.push_back(host.host);
    return NotPresent();
  };
  Detector of_job = {.name = "Job"};
  of_job.detect = [&](const JobWindow& window) {
    all.clear();
    for (const TaskWindow& task : window.tasks) all.push_back(task.task);
    return NotPresent();
  };
  StartEngine({of_running, of_job});
  Train(10, {0, 1, 2});
  EXPECT_THAT(running, ElementsAre(0, 1, 2));
  End(1, "ended");
  Train(20, {0, 2});
  EXPECT_THAT(running, ElementsAre(0, 2));
  EXPECT_THAT(hosts, ElementsAre("host-0", "host-2"));
  EXPECT_THAT(all, ElementsAre(0, 1, 2));
}

TEST_F(TaskEndsTest, WhatIsImportedIsNeitherSilentNorSlow) {
  agents_.Imports("host-0");
  agents_.Imports("host-1");
  Start();
  Train(60, {0, 1});
  Wait(absl::Minutes(10));
  EXPECT_THAT(EventsOf("job"), IsEmpty());
  AgentReports(0);  // The machine runs a trainer as well.
  Train(60, {0});
  Wait(absl::Minutes(4));
  EXPECT_THAT(EventsOf("job"), Contains("raised Stalled"));
}

}  // namespace
}  // namespace tacho::server::conditions
