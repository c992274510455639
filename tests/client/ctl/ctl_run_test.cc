#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "client/ctl/commands/run.h"
#include "client/ctl/line/command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CtlRunTest : public CtlReadingTest {
 protected:
  int Lines() const {
    const std::string text = Out();
    return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  }

  void AddJob(const std::string& name) {
    v1::Job& job = fake_.jobs.emplace_back();
    job.set_name(name);
    job.set_tasks(2);
    job.set_last_step(1200);
    job.set_first_seen_unix_ns(kStart);
    job.set_last_seen_unix_ns(kStart + 90 * kSecond);
  }

  // A series of `values`, one a second, at steps 10, 11, …
  void AddPoints(const std::string& metric, uint32_t task, const std::vector<double>& values) {
    v1::RangeResponse& piece = fake_.range.emplace_back();
    piece.set_series_index(static_cast<uint32_t>(fake_.range.size() - 1));
    v1::SeriesInfo& series = *piece.mutable_series();
    series.mutable_metric()->set_name(metric);
    series.set_job("bert");
    series.set_task(task);
    series.set_host("host-" + std::to_string(task));
    for (size_t i = 0; i < values.size(); ++i) {
      piece.mutable_points()->add_times_unix_ns(kStart + static_cast<int64_t>(i) * kSecond);
      piece.mutable_points()->add_steps(10 + static_cast<int64_t>(i));
      piece.mutable_points()->add_values(values[i]);
    }
  }

  void AddTask(uint32_t task, int64_t last_step, int64_t seconds) {
    v1::Task& one = *fake_.job.add_tasks();
    one.set_task(task);
    one.set_host("host-" + std::to_string(task));
    one.set_last_step(last_step);
    one.set_last_seen_unix_ns(kStart + seconds * kSecond);
    v1::LatestSample& sample = *fake_.latest.add_samples();
    sample.mutable_series()->mutable_metric()->set_name("loss");
    sample.mutable_series()->set_task(task);
    sample.mutable_series()->set_host(one.host());
    sample.set_value(0.25 * (task + 1));
  }

  void MakeRunningJob() {
    v1::Job& job = *fake_.job.mutable_job();
    job.set_name("bert");
    job.set_tasks(2);
    job.set_hosts(2);
    job.set_attempts(1);
    job.set_last_step(900);
    job.set_first_seen_unix_ns(kStart);
    job.set_last_seen_unix_ns(kStart + 90 * kSecond);
    v1::Attempt& attempt = *fake_.job.add_attempts();
    attempt.set_first_seen_unix_ns(kStart);
    attempt.set_last_seen_unix_ns(kStart + 90 * kSecond);
    attempt.set_first_step(0);
    attempt.set_last_step(900);
    (*attempt.mutable_attributes())["planned_steps"] = "1001";
    fake_.job.add_metrics()->set_name("accuracy");
    fake_.job.add_metrics()->set_name("loss");
    AddTask(0, 900, 90);
    AddTask(1, 880, 88);
  }
};

TEST_F(CtlRunTest, JobsReadsEveryPage) {
  for (const char* name : {"a", "b", "c", "d", "e"}) AddJob(name);
  EXPECT_EQ(Run({"jobs"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("JOB"), HasSubstr("\ne "), HasSubstr("10s ago")));
  EXPECT_EQ(Run({"jobs", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("e,2,0,0,0,1200,2026-01-31T12:00:00.000000000Z,"
                               "1769860800000000000,2026-01-31T12:01:30.000000000Z,"));
}

TEST_F(CtlRunTest, AJobWithoutASampleWasNeverSeen) {
  fake_.jobs.emplace_back().set_name("refused");
  fake_.job.mutable_job()->set_name("refused");
  EXPECT_EQ(Run({"jobs"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("refused"), Not(HasSubstr("1970")), Not(HasSubstr("ago"))));
  EXPECT_EQ(Run({"jobs", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("refused,0,0,0,0,,,,,,"));
  EXPECT_EQ(Run({"jobs", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"first_seen\": null,\n"),
                           HasSubstr("\"first_seen_unix_ns\": null,\n")));
  EXPECT_EQ(Run({"status", "refused"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("last seen:  never: no row of it was stored\n"),
                           Not(HasSubstr("1970")), Not(HasSubstr("ago"))));
  EXPECT_EQ(Run({"status", "refused", "-o", "json"}), kOk);
  EXPECT_THAT(
      Out(), AllOf(HasSubstr("\"last_seen\": null,\n"), HasSubstr("\"last_seen_unix_ns\": null,\n"),
                   HasSubstr("\"age_seconds\": null,\n"), Not(HasSubstr("1970"))));
}

TEST_F(CtlRunTest, NoJobsIsNothingFound) {
  EXPECT_EQ(Run({"jobs"}), kNothing);
  EXPECT_EQ(Out(), "");
  EXPECT_THAT(Err(), HasSubstr("no jobs yet"));
  EXPECT_EQ(Run({"jobs", "-o", "json"}), kNothing);
  EXPECT_EQ(Out(), "{\n  \"jobs\": []\n}\n") << "a document all the same";
}

TEST_F(CtlRunTest, APatternThatMatchesNothingIsNamed) {
  // The fake lists its jobs whatever the pattern is, as a collector does for the suggestion.
  fake_.jobs_of_patterns = false;
  AddJob("bert-base");
  EXPECT_EQ(Run({"jobs", "bret-base"}), kNothing);
  EXPECT_THAT(Err(), AllOf(HasSubstr("no job matches 'bret-base' at"),
                           HasSubstr("did you mean 'bert-base'?")));
  EXPECT_EQ(Run({"jobs", "bert", "--state", "silent"}), kNothing);
  EXPECT_THAT(Err(), AllOf(HasSubstr("no job matches 'bert' --state silent at"),
                           HasSubstr("tachoctl jobs '.*bert.*'")));
}

TEST_F(CtlRunTest, CardinalityShowsUseBesideLimitsAndWhatWasRefused) {
  auto* metric = fake_.cardinality.add_metrics();
  metric->set_job("bert");
  metric->set_name("loss");
  metric->set_used(30'000);
  metric->set_limit(40'000);
  auto* refusal = fake_.cardinality.add_refusals();
  refusal->set_job("bert");
  refusal->set_limit("values_per_label");
  refusal->set_action("reject");
  refusal->set_series(7);
  refusal->set_example("loss{id=\"9\"}");
  refusal->set_detail("limits.values_per_label is 5; drop the label");
  ASSERT_EQ(Run({"cardinality", "bert", "--top", "3"}), kOk);
  EXPECT_EQ(fake_.cardinality_request.job(), "bert");
  EXPECT_EQ(fake_.cardinality_request.top(), 3u);
  EXPECT_THAT(Out(), AllOf(HasSubstr("  75\n"), HasSubstr(" 30,000 "), HasSubstr(" 40,000 ")));
  EXPECT_THAT(Out(), HasSubstr("loss{id=\"9\"}"));
  EXPECT_THAT(Out(), HasSubstr("bert: limits.values_per_label is 5"));
  ASSERT_EQ(Run({"cardinality", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"broken_limit\": \"values_per_label\""),
                           HasSubstr("\"count\": 30000")));
  EXPECT_EQ(Run({"cardinality", "--top", "0"}), kUsage);
  fake_.cardinality.set_jobs_left_out(1);
  ASSERT_EQ(Run({"cardinality"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("Metrics and labels of 1 job not in use are left out"));
}

TEST_F(CtlRunTest, QueryTableShowsTasksSideBySideByStep) {
  AddPoints("loss", 0, {2.5, 2.25});
  AddPoints("loss", 1, {2.75, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(Run({"query", "bert", "loss", "--by", "step"}), kOk) << Err();
  EXPECT_EQ(Out(),
            "STEP           TIME (UTC)   task 0   task 1\n"
            "  10  2026-01-31 12:00:00  2.50000  2.75000\n"
            "  11  2026-01-31 12:00:01  2.25000      NaN\n");
  EXPECT_EQ(fake_.range_request.axis(), v1::AXIS_STEP);
}

TEST_F(CtlRunTest, QueryTableFallsBackToBlocksThatFit) {
  AddPoints("loss", 0, {2.5});
  AddPoints("loss", 1, {2.75});
  env_.width = 36;
  EXPECT_EQ(Run({"query", "bert", "loss"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("loss{task=\"0\",host=\"host-0\"}\n"),
                           HasSubstr("loss{task=\"1\",host=\"host-1\"}\n")));
}

TEST_F(CtlRunTest, LongTableIsCutOnATerminalOnlyAndSaysSo) {
  AddPoints("loss", 0, std::vector<double>(100, 1.5));
  env_.out_is_terminal = true;
  EXPECT_EQ(Run({"query", "bert", "loss"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("60 more"), HasSubstr("--limit 0"), HasSubstr("--points")));
  EXPECT_EQ(Run({"query", "bert", "loss", "--limit", "0"}), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("more")));
  env_.out_is_terminal = false;
  EXPECT_EQ(Run({"query", "bert", "loss"}), kOk);
  EXPECT_THAT(Out(), Not(HasSubstr("more")));
}

TEST_F(CtlRunTest, QueryCsvIsExact) {
  AddPoints("loss", 0, {0.1, -std::numeric_limits<double>::infinity()});
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "csv"}), kOk);
  EXPECT_EQ(Out(),
            "job,metric,task,host,labels,attempt,time,time_unix_ns,step,value\r\n"
            "bert,loss,0,host-0,,0,2026-01-31T12:00:00.000000000Z,1769860800000000000,10,0.1\r\n"
            "bert,loss,0,host-0,,0,2026-01-31T12:00:01.000000000Z,1769860801000000000,11,"
            "-Infinity\r\n");
}

TEST_F(CtlRunTest, QueryJsonIsOneDocumentWithNonFiniteStrings) {
  AddPoints("loss", 0, {0.1, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"value\": 0.1}"), HasSubstr("\"value\": \"NaN\"}"),
                           HasSubstr("\"time_unix_ns\": 1769860800000000000"),
                           HasSubstr("\"error\": null")));
}

TEST_F(CtlRunTest, PiecesOfASeriesAreOneSeries) {
  AddPoints("loss", 0, {1, 2});
  v1::RangeResponse more = fake_.range[0];
  more.clear_series();
  fake_.range.push_back(more);
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "csv"}), kOk);
  EXPECT_EQ(Lines(), 5);
}

TEST_F(CtlRunTest, StepThatIsNotThereIsEmpty) {
  AddPoints("loss", 0, {1});
  fake_.range[0].mutable_points()->set_steps(0, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("1769860800000000000,,1\r\n"));
}

TEST_F(CtlRunTest, ReducedSeriesHaveASparklineAndTheirExtremes) {
  v1::RangeResponse& piece = fake_.range.emplace_back();
  piece.mutable_series()->mutable_metric()->set_name("loss");
  v1::Buckets& buckets = *piece.mutable_buckets();
  for (int i = 0; i < 3; ++i) {
    buckets.add_first_times_unix_ns(kStart + i * kSecond);
    buckets.add_last_times_unix_ns(kStart + i * kSecond + 1);
    buckets.add_min(i);
    buckets.add_max(i + 10);
    buckets.add_avg(i + 5);
    buckets.add_first(i);
    buckets.add_last(i);
    buckets.add_counts(4);
    buckets.add_non_finite(i == 2 ? 1 : 0);
  }
  EXPECT_EQ(Run({"query", "bert", "loss", "--points", "3"}), kOk);
  EXPECT_EQ(fake_.range_request.max_points(), 3u);
  EXPECT_THAT(Out(), AllOf(HasSubstr("▁▅█"), HasSubstr("NON-FINITE"), HasSubstr("12")));
  EXPECT_EQ(Run({"query", "bert", "loss", "-n3", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr(",,,2,12,7,2,2,4,1\r\n"));
}

TEST_F(CtlRunTest, LimitStopsReadingALongAnswer) {
  AddPoints("loss", 0, std::vector<double>(100, 1.5));
  fake_.range_hangs = true;
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "csv", "--limit", "3"}), kOk);
  EXPECT_EQ(Lines(), 4);
}

TEST_F(CtlRunTest, ClosedOutputStopsQuietly) {
  AddPoints("loss", 0, {1, 2});
  fake_.range_hangs = true;
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(Run({"query", "bert", "loss", "-o", "csv"}), kOk);
  EXPECT_EQ(Err(), "");
}

TEST_F(CtlRunTest, SilentCollectorRunsIntoTheTimeout) {
  AddPoints("loss", 0, {1, 2});
  fake_.range_hangs = true;
  EXPECT_EQ(Run({"query", "bert", "loss", "--timeout", "200ms", "-o", "json"}), kNothing);
  EXPECT_THAT(Err(), AllOf(HasSubstr("within 200ms"), HasSubstr("--timeout")));
  EXPECT_THAT(Out(), HasSubstr("\"error\": \"nothing came")) << "the document says it is cut";
}

TEST_F(CtlRunTest, RefusalShowsTheCollectorsText) {
  fake_.range_status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "20000 series match; at most 10000"};
  EXPECT_EQ(Run({"query", "bert", "loss"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("20000 series match"));
}

TEST_F(CtlRunTest, MalformedAnswerIsAnErrorNotACrash) {
  AddPoints("loss", 0, {1, 2});
  fake_.range[0].mutable_points()->add_values(3);
  EXPECT_EQ(Run({"query", "bert", "loss"}), kNothing);
  EXPECT_THAT(Err(), AllOf(HasSubstr("different lengths"), Not(HasSubstr("cannot reach"))));
}

TEST_F(CtlRunTest, MistypedJobIsAnsweredWithTheNearest) {
  AddJob("bert-base");
  AddJob("resnet");
  fake_.range_status = fake_.job_status = {grpc::StatusCode::NOT_FOUND, "no such job"};
  EXPECT_EQ(Run({"query", "bert-bsae", "loss"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("no job 'bert-bsae'; did you mean 'bert-base'?"));
  EXPECT_EQ(Run({"status", "resnt"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("did you mean 'resnet'?"));
  fake_.job_status = {grpc::StatusCode::NOT_FOUND, "no job x; did you mean y?"};
  EXPECT_EQ(Run({"status", "x"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("no job x; did you mean y?")) << "the collector's own words";
}

TEST_F(CtlRunTest, MistypedMetricIsAnsweredWithTheNearest) {
  MakeRunningJob();
  EXPECT_EQ(Run({"query", "bert", "los"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("no metric 'los'; did you mean 'loss'?"));
  AddPoints("loss", 0, {1});
  EXPECT_EQ(Run({"query", "bert", "loss", "acuracy"}), kOk) << "one of two was there";
  EXPECT_THAT(Err(), HasSubstr("did you mean 'accuracy'?"));
}

TEST_F(CtlRunTest, AMetricInTheWrongPlaceIsAnsweredWithTheRightSyntax) {
  EXPECT_EQ(Run({"status", "bert", "loss"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("If 'loss' is a metric: tachoctl status bert --metric loss"));
  EXPECT_EQ(Run({"events", "bert", "loss"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("tachoctl query bert loss"));
  EXPECT_EQ(Run({"query", "bert", "--metric", "loss"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("a metric follows the job: tachoctl query JOB METRIC"));
  MakeRunningJob();
  fake_.range_status = {grpc::StatusCode::NOT_FOUND, "no job \"loss\"; did you mean \"los\"?"};
  EXPECT_EQ(Run({"query", "loss", "bert"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("The job comes first: tachoctl query bert loss"));
  fake_.integrals_status = fake_.range_status;
  EXPECT_EQ(Run({"query", "loss", "bert", "--integrate"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("The job comes first: tachoctl query bert loss"));
}

TEST_F(CtlRunTest, StatusShowsProgressAndWhoIsBehind) {
  MakeRunningJob();
  EXPECT_EQ(Run({"status", "bert"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("reporting, last sample 10s ago"),
                           HasSubstr("step 900 of 1001 (90.0 %), 10 steps/s, about 10s to go"),
                           HasSubstr("0.25"), HasSubstr("behind by 20"), Not(HasSubstr("SILENT"))));
  EXPECT_THAT(fake_.latest_request.selector().metrics(), ::testing::ElementsAre("loss"));
}

TEST_F(CtlRunTest, StatusSaysPlainlyThatAJobIsSilent) {
  MakeRunningJob();
  EXPECT_EQ(Run({"status", "bert", "--silent-after", "5s"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("SILENT for 10s"), Not(HasSubstr("to go"))));
}

TEST_F(CtlRunTest, StatusMarksTheOneTaskThatIsSilent) {
  MakeRunningJob();
  AddTask(2, 900, 1);
  EXPECT_EQ(Run({"status", "bert"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("reporting"), HasSubstr("SILENT\n")));
}

TEST_F(CtlRunTest, StatusKnowsThatAJobHasEnded) {
  MakeRunningJob();
  v1::RecordedEvent& event = *fake_.events.add_events();
  event.set_kind("ended");
  event.set_message("reached the planned steps");
  event.set_time_unix_ns(kStart + 95 * kSecond);
  EXPECT_EQ(Run({"status", "bert", "--silent-after", "1s"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("ended 5s ago: reached the planned steps"));
  EXPECT_EQ(Run({"status", "bert", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"state\": \"ended\""), HasSubstr("\"progress\": 0.9")));
  fake_.events_status = {grpc::StatusCode::UNIMPLEMENTED, ""};
  EXPECT_EQ(Run({"status", "bert"}), kOk) << "an older collector has no events";
}

TEST_F(CtlRunTest, SeriesAndEventsAreListed) {
  v1::SeriesInfo& series = *fake_.series.add_series();
  series.mutable_metric()->set_name("chip_power_watts");
  v1::Label& label = *series.add_labels();
  label.set_name("chip");
  label.set_value("3");
  EXPECT_EQ(Run({"series", "bert"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("chip=3"));
  EXPECT_EQ(Run({"series", "bert", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"chip\": \"3\""), HasSubstr("\"task\": null")));
  v1::RecordedEvent& event = *fake_.events.add_events();
  event.set_kind("checkpoint_saved");
  event.set_message("bad \x1b[2J news");
  EXPECT_EQ(Run({"events", "bert"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("checkpoint_saved"), HasSubstr("bad ?[2J news")));
}

TEST_F(CtlRunTest, NobodyAtTheAddressIsItsOwnExitCode) {
  EXPECT_EQ(Run({"jobs", "--address", "127.0.0.1:1", "--timeout", "2s"}), kUnreachable);
  EXPECT_THAT(Err(), AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("tacho-collector"),
                           HasSubstr("TACHO_ADDRESS")));
  EXPECT_EQ(Run({"query", "j", "m", "-a", "127.0.0.1:1", "--timeout", "2s"}), kUnreachable);
}

TEST_F(CtlRunTest, CollectorThatIsDrainingWasReached) {
  fake_.range_status = {grpc::StatusCode::UNAVAILABLE, "draining"};
  EXPECT_EQ(Run({"query", "bert", "loss"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("draining"));
}

TEST_F(CtlRunTest, WrongCommandLinesSayWhatWouldBeRight) {
  EXPECT_EQ(Run({"qeury"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("did you mean 'query'"));
  EXPECT_EQ(Run({"jobs", "--points", "3"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("belongs to 'tachoctl query'"));
  EXPECT_EQ(Run({"query", "bert"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("tachoctl metrics bert"));
  EXPECT_EQ(Run({"status", "a", "b"}), kUsage);
  EXPECT_EQ(Run({"--utc"}), kUsage);
  EXPECT_EQ(Run({"jobs", "--address", "http://x:1"}), kUsage);
  EXPECT_EQ(Run({"query", "j", "m", "-m", "task"}), kUsage);
  EXPECT_EQ(Out(), "");
}

TEST_F(CtlRunTest, EveryCommandExplainsItself) {
  EXPECT_EQ(Run({}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("jobs [PATTERN]"), HasSubstr("Exit codes"),
                           HasSubstr("  4  a check that was asked for failed: a --threshold of "
                                     "'report'")));
  for (const char* name : {"jobs", "status", "metrics", "series", "query", "events", "admin",
                           "import", "push", "export", "completion", "help", "version"}) {
    EXPECT_EQ(Run({"help", name}), kOk);
    const std::string help = Out();
    EXPECT_EQ(Run({name, "--help"}), kOk);
    EXPECT_EQ(Out(), help);
    EXPECT_THAT(help, HasSubstr("--address"));
  }
}

TEST_F(CtlRunTest, FlagsMayStandBeforeTheCommand) {
  AddJob("a");
  EXPECT_EQ(Run({"--output", "csv", "-a", fake_.address, "jobs"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("job,tasks"));
}

TEST_F(CtlRunTest, CompletionListsNames) {
  AddJob("my job");
  MakeRunningJob();
  EXPECT_EQ(Run({"completion", "job-names"}), kOk);
  EXPECT_EQ(Out(), "my job\n");
  EXPECT_EQ(Run({"completion", "metric-names", "bert"}), kOk);
  EXPECT_EQ(Out(), "accuracy\nloss\n");
  EXPECT_EQ(Run({"completion", "bash"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("complete -F _tachoctl tachoctl"), HasSubstr("--points"),
                           Not(HasSubstr("FLAGS@"))));
  EXPECT_EQ(Run({"completion", "tcsh"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("expected bash, zsh or fish"));
}

// What is typed in one shell can be typed in another.
TEST_F(CtlRunTest, EveryShellKnowsEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    ASSERT_EQ(Run({"completion", shell}), kOk);
    EXPECT_THAT(Out(), Not(::testing::ContainsRegex("@[A-Z_]+@")));
    for (const Command& command : Commands()) {
      EXPECT_THAT(Out(), HasSubstr(command.name)) << shell;
      for (const FlagSpec& flag : command.flags) {
        EXPECT_THAT(Out(), HasSubstr((shell == std::string("fish") ? "-l " : "--") + flag.name))
            << shell << " " << command.name;
      }
    }
  }
}

}  // namespace
}  // namespace tacho::ctl
