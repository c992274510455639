// Commands that list: which conditions they send, and what they show.
#include <limits>

#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST_F(CtlReadingTest, JobsAreFilteredByStateLabelAndTime) {
  v1::Job& job = fake_.jobs.emplace_back();
  job.set_name("bert");
  job.set_state(v1::JOB_STATE_SILENT);
  ASSERT_EQ(Run({"jobs", "--state", "silent", "--state", "ended", "--label", "user=ana", "--since",
                 "1h"}),
            kOk)
      << Err();
  const v1::ListJobsRequest& request = fake_.jobs_request;
  EXPECT_THAT(request.states(), ElementsAre(v1::JOB_STATE_SILENT, v1::JOB_STATE_ENDED));
  EXPECT_EQ(request.matchers(0).label(), "user");
  EXPECT_EQ(request.time().begin_unix_ns(), kStart + 100 * kSecond - 3600 * kSecond);
  EXPECT_THAT(Out(), HasSubstr("silent"));
  fake_.jobs.clear();
  EXPECT_EQ(Run({"jobs", "--state", "ended"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("no job matches --state ended at"));
}

TEST_F(CtlReadingTest, JobsAreFilteredByTagAndGroupAndShowBoth) {
  v1::Job& job = fake_.jobs.emplace_back();
  job.set_name("bert");
  ASSERT_EQ(Run({"jobs"}), kOk);
  EXPECT_THAT(Out(), AllOf(Not(HasSubstr("TAGS")), Not(HasSubstr("GROUP"))));
  job.mutable_marks()->add_tags("baseline");
  job.mutable_marks()->add_tags("good");
  job.mutable_marks()->set_group("sweep");
  ASSERT_EQ(Run({"jobs", "--tag", "good", "--tag", "baseline", "--group", "sweep"}), kOk);
  EXPECT_THAT(fake_.jobs_request.tags(), ElementsAre("good", "baseline"));
  EXPECT_EQ(fake_.jobs_request.group(), "sweep");
  EXPECT_THAT(Out(), AllOf(HasSubstr("baseline,good"), HasSubstr("sweep")));
  ASSERT_EQ(Run({"jobs", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("\"baseline,good\",sweep,\r\n"));
  EXPECT_EQ(Run({"jobs", "--tag", ""}), kUsage);
  EXPECT_EQ(Run({"jobs", "--group", ""}), kUsage);
}

TEST_F(CtlReadingTest, SickJobsThatAreLeftOutAreCounted) {
  fake_.fleet.add_jobs()->mutable_job()->set_name("bert");
  fake_.fleet.set_left_out(1234);
  ASSERT_EQ(Run({"jobs", "--sick"}), kOk) << Err();
  EXPECT_EQ(fake_.fleet_request.max_jobs(), 10'000u);
  EXPECT_EQ(Err(), "tachoctl: 1,234 jobs more match; --sick lists at most 10,000\n");
  ASSERT_EQ(Run({"jobs", "--sick", "--limit", "10001"}), kOk) << Err();
  EXPECT_EQ(fake_.fleet_request.max_jobs(), 10'000u);
  EXPECT_THAT(Err(), HasSubstr("1,234 jobs more match"));
  ASSERT_EQ(Run({"jobs", "--sick", "--limit", "10000"}), kOk) << Err();
  EXPECT_EQ(fake_.fleet_request.max_jobs(), 10'000u);
  EXPECT_EQ(Err(), "") << "so many were asked for";
}

TEST_F(CtlReadingTest, EventsOfSeveralKindsAndTheNewestOnly) {
  fake_.events.add_events()->set_kind("ended");
  ASSERT_EQ(Run({"events", "bert", "--kind", "ended", "--kind", "preempted", "--newest", "3",
                 "--steps", "5:", "--attempts", "latest"}),
            kOk);
  const v1::ListEventsRequest& request = fake_.events_request;
  EXPECT_THAT(request.kinds(), ElementsAre("ended", "preempted"));
  EXPECT_EQ(request.newest(), 3u);
  EXPECT_EQ(request.steps().begin(), 5);
  EXPECT_EQ(request.attempts(), v1::ATTEMPTS_LATEST);
  ASSERT_EQ(Run({"events", "bert", "--kind", "ended"}), kOk);
  EXPECT_EQ(fake_.events_request.kind(), "ended") << "understood by older collectors too";
}

TEST_F(CtlReadingTest, QueryKnowsAttemptsCountersAndQuantiles) {
  AddPoints("loss", 0, {1});
  ASSERT_EQ(Run({"query", "bert", "loss", "--attempts", "effective", "--rate"}), kOk) << Err();
  EXPECT_EQ(fake_.range_request.attempts(), v1::ATTEMPTS_EFFECTIVE);
  EXPECT_EQ(fake_.range_request.counter(), v1::COUNTER_FUNCTION_RATE);
  ASSERT_EQ(Run({"query", "bert", "loss", "--quantile", "0.95", "--by", "step"}), kOk) << Err();
  EXPECT_EQ(fake_.range_request.aggregation().function(), v1::AGGREGATE_FUNCTION_QUANTILE);
  EXPECT_EQ(fake_.range_request.aggregation().quantile(), 0.95);
}

TEST_F(CtlReadingTest, ContradictionsNameTheFlagsAndTheRemedy) {
  const auto error = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"query", "bert", "loss"});
    EXPECT_EQ(Run(flags), kUsage);
    return Err();
  };
  EXPECT_THAT(error({"--rate", "--increase"}), HasSubstr("give one"));
  EXPECT_THAT(error({"--rate", "--by", "step"}), HasSubstr("--by time"));
  EXPECT_THAT(error({"--across", "quantile"}), HasSubstr("--quantile 0.95"));
  EXPECT_THAT(error({"--quantile", "95"}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(error({"--quantile", "0.5", "--across", "avg"}), HasSubstr("exclude each other"));
  EXPECT_THAT(error({"--attempts", "newest"}), HasSubstr("effective, all, latest"));
}

TEST_F(CtlReadingTest, LabelsAndTheirValues) {
  v1::LabelValue& value = *fake_.labels.add_values();
  value.set_value("chip");
  value.set_series(8);
  ASSERT_EQ(Run({"labels", "bert"}), kOk);
  EXPECT_EQ(Out(), "LABEL  SERIES\nchip        8\n");
  ASSERT_EQ(Run({"labels", "bert", "chip", "--metric", "power", "-m", "host=a", "-o", "csv"}), kOk);
  EXPECT_EQ(Out(), "value,series\r\nchip,8\r\n");
  EXPECT_EQ(fake_.labels_request.label(), "chip");
  EXPECT_THAT(fake_.labels_request.selector().metrics(), ElementsAre("power"));
  fake_.labels.clear_values();
  EXPECT_EQ(Run({"labels", "bert", "chp"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("a label 'chp'; to list the labels: tachoctl labels bert"));
  EXPECT_EQ(Run({"labels", "bert"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("tachoctl labels bert task"));
}

v1::GetJobResponse RestartedJob() {
  v1::GetJobResponse job;
  job.mutable_job()->set_name("bert");
  for (int i = 0; i < 2; ++i) {
    v1::Attempt& attempt = *job.add_attempts();
    attempt.set_attempt(static_cast<uint32_t>(i));
    attempt.set_first_seen_unix_ns(kStart + 40 * i * kSecond);
    attempt.set_last_seen_unix_ns(kStart + (40 + 50 * i) * kSecond);
    attempt.set_first_step(i == 0 ? 0 : 300);
    attempt.set_last_step(i == 0 ? 400 : 800);
    attempt.set_tasks(2);
    attempt.set_hosts(1);
    attempt.set_state(i == 0 ? v1::JOB_STATE_REPLACED : v1::JOB_STATE_RUNNING);
  }
  v1::Attempt& first = *job.mutable_attempts(0);
  first.set_ended_unix_ns(kStart + 41 * kSecond);
  first.set_end_message("killed by signal 9");
  (*first.mutable_end_fields())["exit_code"] = "137";
  v1::StepRange& superseded = *first.add_superseded();
  superseded.set_begin(300);
  superseded.set_end(400);
  for (int i = 0; i < 2; ++i) {
    v1::EffectiveSpan& span = *job.add_timeline();
    span.set_first_step(i == 0 ? 0 : 300);
    span.set_last_step(i == 0 ? 299 : 800);
    span.set_attempt(static_cast<uint32_t>(i));
  }
  return job;
}

TEST_F(CtlReadingTest, AttemptsShowWhatWasSupersededAndHowEachEnded) {
  fake_.job = RestartedJob();
  ASSERT_EQ(Run({"attempts", "bert"}), kOk) << Err();
  ExpectGolden("attempts.txt", Out());
  ASSERT_EQ(Run({"attempts", "bert", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("{\"first_step\": 300, \"last_step\": 400}"),
                           HasSubstr("\"exit_code\": \"137\""), HasSubstr("\"end\": null")));
  ASSERT_EQ(Run({"attempts", "bert", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("bert,0,replaced,0,400,300..400,2,1,"));
}

v1::NonFinite& AddNonFinite(v1::FirstNonFiniteResponse& answer, uint32_t task, int64_t step) {
  v1::NonFinite& one = *answer.add_spread();
  one.mutable_series()->mutable_metric()->set_name("loss");
  one.mutable_series()->set_task(task);
  one.mutable_series()->set_host("host-" + std::to_string(task));
  one.set_time_unix_ns(kStart + step * kSecond);
  one.set_step(step);
  one.set_value(kNaN);
  one.set_last_finite(2.5);
  one.set_last_finite_step(step - 1);
  one.set_last_finite_unix_ns(kStart + (step - 1) * kSecond);
  one.set_non_finite(7);
  return one;
}

TEST_F(CtlReadingTest, NonFiniteShowsWhereItBeganAndHowItSpread) {
  AddNonFinite(fake_.non_finite, 3, 40);
  v1::NonFinite& second = AddNonFinite(fake_.non_finite, 0, 41);
  second.set_value(std::numeric_limits<double>::infinity());
  second.set_finite_after(5);
  second.clear_last_finite();
  second.clear_last_finite_unix_ns();
  second.clear_last_finite_step();
  fake_.non_finite.set_series_turned(3);
  fake_.non_finite.set_series_examined(8);
  ASSERT_EQ(Run({"nonfinite", "bert", "loss", "--steps", "10:", "--limit", "2"}), kOk) << Err();
  ExpectGolden("nonfinite.txt", Out());
  EXPECT_EQ(fake_.non_finite_request.max_series(), 2u);
  EXPECT_EQ(fake_.non_finite_request.steps().begin(), 10);
  ASSERT_EQ(Run({"nonfinite", "bert", "-o", "json"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("\"value\": \"NaN\""), HasSubstr("\"value\": \"Infinity\""),
                    HasSubstr("\"last_finite\": null"), HasSubstr("\"last_finite_time\": null")));
  EXPECT_THAT(Err(), HasSubstr("--limit")) << "the document cannot say that it is cut";
}

TEST_F(CtlReadingTest, AllFiniteIsAnAnswerAndNoSeriesIsNone) {
  fake_.non_finite.set_series_examined(8);
  fake_.non_finite.set_samples_examined(12000);
  ASSERT_EQ(Run({"nonfinite", "bert"}), kOk);
  EXPECT_EQ(Out(), "All finite: 12,000 samples of 8 series\n");
  fake_.non_finite.Clear();
  fake_.job.add_metrics()->set_name("loss");
  EXPECT_EQ(Run({"nonfinite", "bert", "los"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("did you mean 'loss'?"));
}

TEST_F(CtlReadingTest, HelpGroupsCommands) {
  ASSERT_EQ(Run({"help"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("What runs now:\n  jobs"), HasSubstr("What was recorded:\n  query"),
                    HasSubstr("Data in and out:\n  import"), HasSubstr("--color")));
  EXPECT_EQ(Out().find("This tool:"), Out().rfind("This tool:")) << "groups stand together";
  for (const char* name : {"attempts", "labels", "nonfinite", "plot", "compare"}) {
    EXPECT_EQ(Run({name, "--help"}), kOk);
    EXPECT_THAT(Out(), AllOf(HasSubstr("Examples:"), HasSubstr("JSON:"))) << name;
  }
}

TEST_F(CtlReadingTest, CompletionKnowsEveryChoiceOfEveryFlag) {
  ASSERT_EQ(Run({"completion", "bash"}), kOk);
  EXPECT_THAT(
      Out(),
      AllOf(
          HasSubstr("    query:--by) COMPREPLY=($(compgen -W 'time step' -- \"$cur\")); return ;;"),
          HasSubstr("compare:--by) COMPREPLY=($(compgen -W 'step elapsed'"),
          HasSubstr("jobs:--state) COMPREPLY=($(compgen -W 'running silent ended'"),
          HasSubstr("*:--color) COMPREPLY=($(compgen -W 'auto always never'"),
          HasSubstr("*:--output|*:-o) COMPREPLY=($(compgen -W 'table json csv'"),
          Not(HasSubstr("_CASES@"))));
}

TEST_F(CtlReadingTest, QueryIntegratesInsteadOfShowingSamples) {
  v1::Integral& integral = *fake_.integrals.add_integrals();
  integral.mutable_series()->mutable_metric()->set_name("chip_power_watts");
  integral.mutable_series()->set_task(3);
  integral.set_series_count(1);
  integral.set_value(1.8e6);
  integral.set_unit("J");
  integral.set_covered_ns(1200 * kSecond);
  integral.set_not_covered_ns(90 * kSecond + kSecond / 2);
  integral.set_gaps(1);
  ASSERT_EQ(Run({"query", "bert", "chip_power_watts", "--integrate"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("INTEGRAL"), HasSubstr("1800000"), HasSubstr("0.5"),
                           HasSubstr("90.5"), HasSubstr("1200")));
  EXPECT_FALSE(fake_.integrate_requests.at(0).sum());
  EXPECT_EQ(fake_.integrate_requests.at(0).max_gap_ns(), 0) << "the collector's default";
  ASSERT_EQ(Run({"query", "bert", "chip_power_watts", "--integrate", "--across", "sum",
                 "--group-by", "task,chip", "--max-gap", "5m", "--attempt", "1", "-o", "json"}),
            kOk)
      << Err();
  const v1::IntegrateRequest& request = fake_.integrate_requests.at(1);
  EXPECT_TRUE(request.sum());
  EXPECT_THAT(request.by(), testing::ElementsAre("task", "chip"));
  EXPECT_EQ(request.max_gap_ns(), 300 * kSecond);
  EXPECT_EQ(request.selector().matchers(0).label(), "attempt");
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"kilowatt_hours\": 0.5"), HasSubstr("\"unit\": \"J\""),
                           HasSubstr("\"not_covered_seconds\": 90.5")));
  integral.set_unit("By");
  ASSERT_EQ(Run({"query", "bert", "rate", "--integrate", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("\"kilowatt_hours\": null")) << "bytes are no energy";
}

TEST_F(CtlReadingTest, IntegrateRefusesWhatDoesNotGoWithIt) {
  const auto refused = [&](std::vector<std::string> flags) {
    std::vector<std::string> line = {"query", "bert", "power", "--integrate"};
    line.insert(line.end(), flags.begin(), flags.end());
    EXPECT_EQ(Run(line), kUsage);
    return Err();
  };
  EXPECT_THAT(refused({"--points", "5"}), HasSubstr("leave out --points"));
  EXPECT_THAT(refused({"--rate"}), HasSubstr("leave out --rate"));
  EXPECT_THAT(refused({"--across", "avg"}), HasSubstr("--across sum, not --across avg"));
  EXPECT_THAT(refused({"--group-by", "task"}), HasSubstr("--group-by needs --across"));
  EXPECT_THAT(refused({"--max-gap", "never"}), HasSubstr("--max-gap"));
  EXPECT_EQ(Run({"query", "bert", "power", "--max-gap", "5m"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--max-gap needs --integrate"));
  EXPECT_TRUE(fake_.integrate_requests.empty());
}

}  // namespace
}  // namespace tacho::ctl
