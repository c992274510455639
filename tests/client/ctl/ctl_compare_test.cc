// The requests of 'tachoctl compare', and its output.
#include <limits>

#include "client/ctl/line/parse.h"
#include "tests/client/ctl/ctl_comparison_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SubjectTest, AttemptIsWhatFollowsTheLastAt) {
  EXPECT_EQ(ParseSubject("bert").job, "bert");
  EXPECT_EQ(ParseSubject("bert@2").job, "bert");
  EXPECT_EQ(ParseSubject("bert@2").attempt, 2u);
  EXPECT_EQ(ParseSubject("a@b").job, "a@b");
  EXPECT_EQ(ParseSubject("a@1@").job, "a@1") << "a job whose name looks like an attempt";
  EXPECT_EQ(ParseSubject("a@1@").attempt, std::nullopt);
  EXPECT_EQ(ParseSubject("a@1@0").attempt, 0u);
  EXPECT_EQ(ParseSubject("a@99999999999").job, "a@99999999999") << "no such attempt can be";
  for (const char* text : {"bert", "bert@2", "a@b", "a@1@", "a@1@0", "@1"}) {
    EXPECT_EQ(ParseSubject(text).Text(), text);
  }
}

TEST_F(CtlComparisonTest, TablesOfRunsAttributesAndMetrics) {
  MakeComparison();
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1"}), kOk) << Err();
  ExpectGolden("compare.txt", Out());
  EXPECT_EQ(fake_.compare_request.subjects(1).attempt(), 1u);
  EXPECT_EQ(fake_.compare_request.alignment(), v1::ALIGNMENT_STEP);
}

TEST_F(CtlComparisonTest, NarrowTerminalsShowWhatMattersMost) {
  MakeComparison();
  env_.width = 80;
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1"}), kOk);
  ExpectGolden("compare_80.txt", Out());
  EXPECT_LE(Width(), 80u);
  env_.width = 40;
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("CHANGE"), HasSubstr("-o csv")));
}

TEST_F(CtlComparisonTest, Documents) {
  MakeComparison();
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1", "--rows", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"relative_difference\": 0.1"),
                           HasSubstr("\"avg\": [1, null]"), HasSubstr("\"equal_attributes\": 3")));
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("loss,nats,bert@1,3,1,"));
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1", "--rows", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("metric,step,job,avg,min,max,count,non_finite,difference\r\n"
                               "loss,0,bert@0,3,2.5,3.5,2,0,\r\n"
                               "loss,0,bert@1,3.5,3,4,2,0,0.5\r\n"));
}

TEST_F(CtlComparisonTest, ARunWithoutSamplesHasNoTimes) {
  MakeComparison();
  v1::ComparedSubject& first = *fake_.comparison[0].mutable_subjects()->mutable_subjects(0);
  first.clear_first_unix_ns();
  first.clear_last_unix_ns();
  ASSERT_EQ(Run({"compare", "bert@0", "bert@1", "-o", "json"}), kOk);
  for (const char* field : {"first_time", "first_time_unix_ns", "last_time", "last_time_unix_ns"}) {
    EXPECT_THAT(Out(), HasSubstr(absl::StrCat("\"", field, "\": null")));
  }
}

TEST_F(CtlComparisonTest, RequestIsWhatTheFlagsSay) {
  MakeComparison();
  ASSERT_EQ(Run({"compare", "bert", "gpt", "--by", "elapsed", "--metric", "loss", "-m", "task=0",
                 "--attempts", "all", "--points", "50"}),
            kOk);
  const v1::CompareRequest& request = fake_.compare_request;
  EXPECT_FALSE(request.subjects(0).has_attempt());
  EXPECT_EQ(request.subjects(1).attempts(), v1::ATTEMPTS_ALL);
  EXPECT_EQ(request.alignment(), v1::ALIGNMENT_ELAPSED);
  EXPECT_THAT(request.metrics(), ElementsAre("loss"));
  EXPECT_EQ(request.matchers(0).value(), "0");
  EXPECT_EQ(request.max_points(), 50u);
}

TEST_F(CtlComparisonTest, WrongUseNamesTheFlagAndTheRemedy) {
  EXPECT_EQ(Run({"compare", "bert"}), kUsage);
  EXPECT_EQ(Run({"compare", "a", "b", "--rows"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--rows needs -o csv or -o json"));
  EXPECT_EQ(Run({"compare", "a", "b", "--by", "elapsed", "--steps", "1:2"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--steps and --by elapsed exclude each other"));
  EXPECT_EQ(Run({"compare", "a", "b", "-m", "attempt=1"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("JOB@ATTEMPT"));
  EXPECT_EQ(Run({"compare", "a", "b", "--by", "time"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("step, elapsed"));
}

TEST_F(CtlComparisonTest, MistypedMetricIsAnsweredWithTheNearest) {
  MakeComparison();
  v1::CompareMetric& metric = *fake_.comparison.emplace_back().mutable_metric();
  metric.mutable_metric()->set_name("los");
  metric.add_columns();
  metric.add_columns();
  fake_.job.add_metrics()->set_name("loss");
  EXPECT_EQ(Run({"compare", "bert@0", "bert@1"}), kOk);
  EXPECT_THAT(Err(), HasSubstr("no metric 'los'; did you mean 'loss'?"));
  ExpectGolden("compare.txt", Out());
}

TEST_F(CtlComparisonTest, AnswerThatDoesNotFitIsAnErrorNotACrash) {
  MakeComparison();
  fake_.comparison[1].mutable_metric()->mutable_columns(1)->clear_avg();
  EXPECT_EQ(Run({"compare", "bert@0", "bert@1"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("does not fit together"));
  fake_.comparison.clear();
  EXPECT_EQ(Run({"compare", "bert@0", "bert@1"}), kNothing);
}

}  // namespace
}  // namespace tacho::ctl
