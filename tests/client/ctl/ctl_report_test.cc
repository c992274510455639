// The documents that 'tachoctl report' writes, and its exit status.
#include <filesystem>
#include <fstream>
#include <limits>

#include "client/ctl/text/svg_chart.h"
#include "client/ctl/views/threshold.h"
#include "tests/client/ctl/ctl_comparison_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ThresholdTest, IsMetricStatisticAndLimit) {
  const auto text = [](const char* typed) {
    const absl::StatusOr<Threshold> threshold = ParseThreshold(typed);
    return threshold.ok() ? threshold->metric + ": " + threshold->Text() : "refused";
  };
  EXPECT_EQ(text("loss:+2%"), "loss: mean at most 2 % above");
  EXPECT_EQ(text("accuracy:last:-0.5%"), "accuracy: last at most 0.5 % below");
  EXPECT_EQ(text("a:b:max:0.25"), "a:b: max at most 0.25 away");
  EXPECT_EQ(text("train:loss:0"), "train:loss: mean at most 0 away");
  for (const char* wrong : {"loss", "loss:", ":2%", "loss:two", "loss:%", "loss:+-2", "loss:nan",
                            "loss:inf%", ":max:2", ""}) {
    EXPECT_EQ(text(wrong), "refused") << wrong;
  }
}

TEST_F(CtlComparisonTest, ReportAsMarkdown) {
  MakeComparison();
  ASSERT_EQ(Run({"report", "bert@0", "bert@1"}), kOk) << Err();
  ExpectGolden("report.md", Out());
  EXPECT_THAT(Out(), AllOf(HasSubstr("**No thresholds were set**"), HasSubstr("&lt;b>0.2\\|")));
}

TEST_F(CtlComparisonTest, ReportAsHtmlStandsByItself) {
  MakeComparison();
  ASSERT_EQ(Run({"report", "bert@0", "bert@1", "--format", "html", "-t", "accuracy:1%"}), kOk);
  ExpectGolden("report.html", Out());
  EXPECT_THAT(Out(), AllOf(HasSubstr("<polygon class=\"band c1\""), HasSubstr("&lt;b&gt;0.2"),
                           HasSubstr("prefers-color-scheme: dark"), Not(HasSubstr("<script")),
                           Not(HasSubstr("http"))));
}

TEST_F(CtlComparisonTest, FailedThresholdHasAnExitCodeOfItsOwn) {
  MakeComparison();
  EXPECT_EQ(Run({"report", "a", "b", "-t", "accuracy:+1%"}), kOk) << Err();
  EXPECT_EQ(Err(), "");
  EXPECT_EQ(Run({"report", "a", "b", "-t", "accuracy:+1%", "-t", "nothing:5%"}), kThreshold);
  EXPECT_THAT(Err(), AllOf(HasSubstr("FAILED: 1 of 2"), HasSubstr("do not both have this metric")));
  EXPECT_THAT(Out(), HasSubstr("# b against a")) << "the report is there all the same";
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:+50%"}), kThreshold) << "a NaN came up";
  EXPECT_THAT(Err(), HasSubstr("1 value NaN or infinite"));
  fake_.comparison[1].mutable_metric()->mutable_columns(1)->mutable_summary()->set_non_finite(0);
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:+10%"}), kOk);
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:+9.9%"}), kThreshold);
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:-1%"}), kOk) << "it did not fall";
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:0.375"}), kOk);
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:0.37"}), kThreshold);
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:last:+100%"}), kThreshold) << "1 to 2.25";
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:last:+125%"}), kOk);
  fake_.job_status = {grpc::StatusCode::NOT_FOUND, "no job 'b'; did you mean 'bert'?"};
  EXPECT_EQ(Run({"report", "a", "b", "-t", "loss:+1%"}), kNothing);
  EXPECT_THAT(Err(), HasSubstr("did you mean 'bert'?"));
}

// What counts is judged by its rate or by its end: an average of its values is neither.
TEST_F(CtlComparisonTest, CountersAreComparedByTheirRate) {
  MakeComparison();
  v1::CompareMetric& metric = *fake_.comparison[1].mutable_metric();
  for (const auto type : {v1::METRIC_TYPE_COUNTER, v1::METRIC_TYPE_HISTOGRAM}) {
    metric.mutable_metric()->set_type(type);
    for (int i = 0; i < 2; ++i) {
      v1::ComparedSummary& summary = *metric.mutable_columns(i)->mutable_summary();
      summary.set_non_finite(0);
      summary.set_rate(i == 0 ? 8 : 10);
      summary.set_increase(800);
    }
    EXPECT_EQ(Run({"report", "bert@0", "bert@1", "-t", "loss:+25%"}), kOk) << Err();
    EXPECT_THAT(Out(), AllOf(HasSubstr("| +25.00 % | 8/s | 1 | 10/s | 2.25 |"),
                             HasSubstr("growth per second of one series")));
    EXPECT_EQ(Run({"report", "bert@0", "bert@1", "-t", "loss:+24%"}), kThreshold);
    EXPECT_EQ(Run({"report", "bert@0", "bert@1", "-t", "loss:1"}), kThreshold);
    EXPECT_EQ(Run({"report", "bert@0", "bert@1", "-t", "loss:last:+125%"}), kOk);
    EXPECT_EQ(Run({"compare", "bert@0", "bert@1"}), kOk);
    EXPECT_THAT(Out(), AllOf(HasSubstr("RATE/S"), Not(HasSubstr("2.875")), HasSubstr("+25.00 %")));
    EXPECT_EQ(Run({"compare", "bert@0", "bert@1", "-o", "json"}), kOk);
    EXPECT_THAT(Out(), AllOf(HasSubstr("\"avg\": null"), HasSubstr("\"rate\": 10"),
                             HasSubstr("\"relative_difference\": 0.25")));
  }
  metric.mutable_columns(0)->mutable_summary()->clear_rate();
  EXPECT_EQ(Run({"report", "bert@0", "bert@1", "-t", "loss:+25%"}), kThreshold);
  EXPECT_THAT(Err(), HasSubstr("no two samples of it in time"));
}

TEST_F(CtlComparisonTest, ReportHasTheEnergyOfMetricsInWatts) {
  MakeComparison();
  EXPECT_EQ(Run({"report", "bert@0", "bert@1"}), kOk);
  EXPECT_TRUE(fake_.integrate_requests.empty()) << "no metric is a power";
  v1::CompareMetric& metric = *fake_.comparison[1].mutable_metric();
  metric.mutable_metric()->set_name("chip_power_watts");
  metric.mutable_metric()->set_unit("W");
  v1::Integral& integral = *fake_.integrals.add_integrals();
  integral.mutable_series()->mutable_metric()->set_name("chip_power_watts");
  integral.set_value(7.2e6);
  integral.set_covered_ns(3600 * kSecond);
  integral.set_not_covered_ns(90 * kSecond);
  ASSERT_EQ(Run({"report", "bert@0", "bert@1"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("## Energy"),
                           HasSubstr("7200000 J, 2 kWh; without 1m 30s that are not covered")));
  ASSERT_EQ(fake_.integrate_requests.size(), 2u);
  EXPECT_TRUE(fake_.integrate_requests[1].sum());
  EXPECT_EQ(fake_.integrate_requests[1].selector().matchers(0).value(), "1");
  ASSERT_EQ(Run({"report", "bert@0", "bert@1", "--format", "html"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("<h2>Energy</h2>"));
  ASSERT_EQ(Run({"report", "bert@0", "bert@1", "-o", "json"}), kOk);
  EXPECT_THAT(Out(),
              AllOf(HasSubstr("\"kilowatt_hours\": 2"), HasSubstr("\"not_covered_seconds\": 90")));
  fake_.integrals_status = {grpc::StatusCode::UNIMPLEMENTED, "unknown method"};
  EXPECT_EQ(Run({"report", "bert@0", "bert@1"}), kOk) << "of an older collector";
  EXPECT_THAT(Out(), Not(HasSubstr("Energy")));
  EXPECT_THAT(Err(), HasSubstr("without energy"));
}

TEST_F(CtlComparisonTest, ThresholdOfZeroInTheFirstRunNeedsAnAbsoluteLimit) {
  MakeComparison();
  v1::CompareMetric& accuracy = *fake_.comparison[2].mutable_metric();
  v1::ComparedSummary& summary = *accuracy.mutable_columns(1)->mutable_summary();
  summary.set_mean_difference(0.5);
  summary.set_relative_difference(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Run({"report", "a", "b", "-t", "accuracy:5%"}), kThreshold);
  EXPECT_THAT(Err(), HasSubstr("give a limit without %"));
  EXPECT_EQ(Run({"report", "a", "b", "-t", "accuracy:0.5"}), kOk);
}

TEST_F(CtlComparisonTest, ReportGoesToAFileAndSaysWhenItCannot) {
  MakeComparison();
  const std::string path = testing::TempDir() + "/tacho_report_test.md";
  ASSERT_EQ(Run({"report", "a", "b", "-f", path, "-t", "nothing:1%"}), kThreshold);
  EXPECT_EQ(Out(), "");
  std::ifstream file(path);
  std::string first_line;
  std::getline(file, first_line);
  EXPECT_EQ(first_line, "# b against a");
  std::filesystem::remove(path);
  EXPECT_EQ(Run({"report", "a", "b", "-f", "/nowhere/report.md"}), kNothing);
  EXPECT_THAT(Err(), AllOf(HasSubstr("--file /nowhere/report.md"), HasSubstr("No such file")));
}

TEST_F(CtlComparisonTest, ReportAsData) {
  MakeComparison();
  EXPECT_EQ(Run({"report", "a", "b", "-t", "accuracy:1%", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"verdict\": \"passed\""), HasSubstr("\"limit\": 0.01"),
                           HasSubstr("\"metrics\": [")));
  EXPECT_EQ(Run({"report", "a", "b", "-t", "none:1%", "-o", "csv"}), kThreshold);
  EXPECT_THAT(Out(), HasSubstr("none,mean at most 1 % away,NaN,failed,"));
}

TEST_F(CtlComparisonTest, ReportRefusesWhatItCannotDo) {
  EXPECT_EQ(Run({"report", "a"}), kUsage);
  EXPECT_EQ(Run({"report", "a", "b", "--threshold", "loss"}), kUsage);
  EXPECT_THAT(Err(), AllOf(HasSubstr("--threshold 'loss'"), HasSubstr("like loss:+2%")));
  EXPECT_EQ(Run({"report", "a", "b", "--format", "html", "-o", "json"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--format and --output exclude each other"));
  EXPECT_EQ(Run({"report", "a", "b", "--format", "pdf"}), kUsage);
}

TEST_F(CtlComparisonTest, MetricOfAThresholdIsAskedForToo) {
  MakeComparison();
  Run({"report", "a", "b", "--metric", "accuracy", "-t", "loss:1%"});
  EXPECT_THAT(fake_.compare_request.metrics(), ::testing::ElementsAre("accuracy", "loss"));
}

TEST(SvgChartTest, EscapesWhatOthersNamed) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&'\x01\xFF"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;?\xEF\xBF\xBD");
}

}  // namespace
}  // namespace tacho::ctl
