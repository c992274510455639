#include "proto/exposition/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/utf8.h"
#include "proto/exposition/exposition_scanner.h"

namespace tacho {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string PrometheusError(absl::string_view text) {
  return std::string(ReadPrometheusText(text).status().message());
}
std::string OpenMetricsError(absl::string_view text) {
  return std::string(ReadOpenMetricsText(text).status().message());
}

TEST(ExpositionNumberTest, ReadsWhatGoReadsAndNothingElse) {
  EXPECT_EQ(ParseExpositionNumber("1"), 1);
  EXPECT_EQ(ParseExpositionNumber("+1.5e3"), 1500);
  EXPECT_EQ(ParseExpositionNumber("-.5"), -0.5);
  EXPECT_EQ(ParseExpositionNumber("08"), 8);
  EXPECT_EQ(ParseExpositionNumber("+Inf"), kInf);
  EXPECT_EQ(ParseExpositionNumber("-inf"), -kInf);
  EXPECT_EQ(ParseExpositionNumber("Infinity"), kInf);
  EXPECT_TRUE(std::isnan(*ParseExpositionNumber("NaN")));
  EXPECT_EQ(ParseExpositionNumber("1e999"), kInf);
  EXPECT_EQ(ParseExpositionNumber("1e-999"), 0);
  EXPECT_EQ(ParseExpositionNumber("4.9e-324"), 4.9e-324);
  for (const char* word : {"", "+", "-", "a", "1_2", "0x1p-3", "0b1", "1 ", "--1", "+-1", "inf1",
                           "nan(1)", "1e", "."}) {
    EXPECT_EQ(ParseExpositionNumber(word), std::nullopt) << word;
  }
}

TEST(ExpositionNumberTest, TimesAreCutToNanosecondsAndEndAtTheLimits) {
  EXPECT_EQ(ParseSecondsAsNs("1.5"), 1'500'000'000);
  EXPECT_EQ(ParseSecondsAsNs("000"), 0);
  EXPECT_EQ(ParseSecondsAsNs("1.5e3"), 1'500'000'000'000);
  EXPECT_EQ(ParseSecondsAsNs("-1.1"), -1'100'000'000);
  EXPECT_EQ(ParseSecondsAsNs("1700000000.1234567899"), 1'700'000'000'123'456'789);
  EXPECT_EQ(ParseSecondsAsNs("12345678901234567890.1"), INT64_MAX);
  EXPECT_EQ(ParseSecondsAsNs("-12345678901"), INT64_MIN);
  for (const char* word : {"", "NaN", "Inf", "1.1.1", "1_2", "0x1", "."}) {
    EXPECT_EQ(ParseSecondsAsNs(word), std::nullopt) << word;
  }
}

TEST(ExpositionNumberTest, Utf8IsCheckedToItsEdges) {
  EXPECT_TRUE(IsUtf8("a\xc2\x80\xe2\x98\x83\xf4\x8f\xbf\xbf"));
  for (const char* bytes :
       {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x98"}) {
    EXPECT_FALSE(IsUtf8(bytes)) << testing::PrintToString(bytes);
  }
  EXPECT_EQ(CodePoints("a\xe2\x98\x83"), 2);
}

TEST(PrometheusTextTest, ReadsNamesLabelsValuesTimesAndMetadata) {
  const auto read = ReadPrometheusText(
      "# HELP steps Steps \\\\ done\\nso far\n"
      "# TYPE steps counter\n"
      "steps{job=\"a\\\"b\",path=\"c:\\\\d\\n\"} 12 1700000000123\n"
      "\n"
      "# a comment\n"
      "  up { x = \"1\" , } 0.5  \n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->samples.size(), 2);
  const ExpositionSample& steps = read->samples[0];
  EXPECT_EQ(steps.name, "steps");
  EXPECT_THAT(steps.labels, ElementsAre(Pair("job", "a\"b"), Pair("path", "c:\\d\n")));
  EXPECT_EQ(steps.value, 12);
  EXPECT_EQ(steps.time_ns, 1'700'000'000'123'000'000);
  EXPECT_EQ(read->families[steps.family].type, FamilyType::kCounter);
  EXPECT_EQ(read->families[steps.family].help, "Steps \\ done\nso far");
  EXPECT_EQ(read->samples[1].value, 0.5);
  EXPECT_EQ(read->samples[1].time_ns, std::nullopt);
  EXPECT_THAT(read->samples[1].labels, ElementsAre(Pair("x", "1")));
}

TEST(PrometheusTextTest, PartsOfHistogramsAndSummariesBelongToTheirFamily) {
  const auto read = ReadPrometheusText(
      "# TYPE h histogram\n"
      "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n"
      "# TYPE s summary\n"
      "s{quantile=\"0.5\"} 1\ns_sum 2\ns_count 3\n"
      "s_bucket 1\n");
  ASSERT_TRUE(read.ok()) << read.status();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read->families[read->samples[i].family].name, "h");
  for (size_t i = 4; i < 7; ++i) EXPECT_EQ(read->families[read->samples[i].family].name, "s");
  EXPECT_EQ(read->families[read->samples[7].family].type, FamilyType::kUnknown);
}

TEST(PrometheusTextTest, QuotedNamesAreRead) {
  const auto read = ReadPrometheusText("{\"a.b\",\"c.d\"=\"e\"} 1\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->samples[0].name, "a.b");
  EXPECT_THAT(read->samples[0].labels, ElementsAre(Pair("c.d", "e")));
}

TEST(PrometheusTextTest, RefusesWithLineAndRule) {
  EXPECT_THAT(PrometheusError("a 1\nb"), HasSubstr("line 2: no value of b"));
  EXPECT_THAT(PrometheusError("a 1\nb\n"), HasSubstr("line 2: no value of b"));
  EXPECT_THAT(PrometheusError("a{b=\"c\nd\"} 1\n"), HasSubstr("line 1: a quoted text has no end"));
  EXPECT_THAT(PrometheusError("a{b=\"\\t\"} 1\n"), HasSubstr("a backslash before"));
  EXPECT_THAT(PrometheusError("a{b=\"1\",b=\"2\"} 1\n"), HasSubstr("label b twice"));
  EXPECT_THAT(PrometheusError("a{__name__=\"b\"} 1\n"), HasSubstr("__name__"));
  EXPECT_THAT(PrometheusError("{b=\"1\"} 1\n"), HasSubstr("no name"));
  EXPECT_THAT(PrometheusError("a 1 2.5\n"), HasSubstr("whole number of milliseconds"));
  EXPECT_THAT(PrometheusError("a 1 2 3\n"), HasSubstr("something follows"));
  EXPECT_THAT(PrometheusError("# TYPE a counter\n# TYPE a gauge\n"),
              HasSubstr("second, other TYPE"));
  EXPECT_THAT(PrometheusError("a 1\n# TYPE a gauge\n"), HasSubstr("after its samples"));
  EXPECT_THAT(PrometheusError("# TYPE a bla\n"), HasSubstr("no type"));
  EXPECT_THAT(PrometheusError("# TYPE a histogram\na_bucket{le=\"x\"} 1\n"),
              HasSubstr("no number"));
  EXPECT_THAT(PrometheusError("a{b=\"\xff\"} 1\n"), HasSubstr("not UTF-8"));
}

TEST(PrometheusTextTest, LapsesThatPrometheusTakesAreTakenAndCounted) {
  const auto no_end = ReadPrometheusText("a 1\nb 2");
  ASSERT_TRUE(no_end.ok()) << no_end.status();
  ASSERT_EQ(no_end->samples.size(), 2);
  EXPECT_EQ(no_end->samples[1].value, 2);
  EXPECT_EQ(no_end->lapses, 1);
  EXPECT_EQ(no_end->first_lapse, "line 2: the last line has no end");
  const auto help = ReadPrometheusText(
      "# HELP a One\n# TYPE a gauge\na{x=\"1\"} 1\n# HELP a Two\na{x=\"2\"} 2\n# HELP a One\n");
  ASSERT_TRUE(help.ok()) << help.status();
  EXPECT_EQ(help->samples.size(), 2);
  EXPECT_EQ(help->families[0].help, "One") << "the last one counts, as in Prometheus";
  EXPECT_EQ(help->lapses, 2);
  EXPECT_EQ(help->first_lapse, "line 4: a second, other HELP of a");
  EXPECT_EQ(ReadPrometheusText("# HELP a One\n# HELP a One\na 1\n")->lapses, 0);
}

TEST(PrometheusTextTest, LimitsHoldAtTheirEdges) {
  EXPECT_TRUE(ReadPrometheusText("a 1\nb 1\n", {.max_samples = 2}).ok());
  EXPECT_EQ(ReadPrometheusText("a 1\nb 1\nc 1\n", {.max_samples = 2}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ReadPrometheusText("a{x=\"\",y=\"\"} 1\n", {.max_labels = 2}).ok());
  EXPECT_EQ(ReadPrometheusText("a{x=\"\",y=\"\",z=\"\"} 1\n", {.max_labels = 2}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ReadOpenMetricsText("a 1\nb 1\n# EOF\n", {.max_samples = 2}).ok());
  EXPECT_EQ(ReadOpenMetricsText("a 1\nb 1\nc 1\n# EOF\n", {.max_samples = 2}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(PrometheusTextTest, NothingIsValid) {
  const auto read = ReadPrometheusText("");
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->samples, IsEmpty());
}

TEST(OpenMetricsTextTest, ReadsFamiliesUnitsTimesAndPassesOverExemplars) {
  const auto read = ReadOpenMetricsText(
      "# HELP wait_seconds Waiting \\\"here\\\"\n"
      "# TYPE wait_seconds histogram\n"
      "# UNIT wait_seconds seconds\n"
      "wait_seconds_bucket{le=\"0.5\"} 1 1700000000.25 # {trace=\"x # y\"} 0.3 1700000000\n"
      "wait_seconds_bucket{le=\"+Inf\"} 2 1700000000.25\n"
      "wait_seconds_count 2 1700000000.25\n"
      "wait_seconds_sum 3.5 1700000000.25\n"
      "# TYPE done counter\n"
      "done_total{a=\"b\\z\"} 7\n"
      "# EOF");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->samples.size(), 5);
  EXPECT_EQ(read->families[0].unit, "seconds");
  EXPECT_EQ(read->families[0].help, "Waiting \"here\"");
  EXPECT_EQ(read->samples[0].time_ns, 1'700'000'000'250'000'000);
  EXPECT_EQ(read->samples[0].value, 1);
  EXPECT_EQ(read->samples[4].name, "done_total");
  EXPECT_THAT(read->samples[4].labels, ElementsAre(Pair("a", "b\\z"))) << "no escape of its";
  EXPECT_EQ(read->families[read->samples[4].family].type, FamilyType::kCounter);
}

TEST(OpenMetricsTextTest, PointThatComesTwiceAtATimeIsOne) {
  const auto read = ReadOpenMetricsText("# TYPE a gauge\na 1 0.0000000001\na 2 0\na 3 1\n# EOF\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->samples.size(), 2);
  EXPECT_EQ(read->samples[0].value, 1);
  EXPECT_EQ(read->samples[1].value, 3);
}

TEST(OpenMetricsTextTest, RefusesWithLineAndRule) {
  EXPECT_THAT(OpenMetricsError("a 1\n"), HasSubstr("line 2: # EOF is missing"));
  EXPECT_THAT(OpenMetricsError("a 1\n# EO"), HasSubstr("line 2"));
  EXPECT_THAT(OpenMetricsError("# EOF\na 1\n"), HasSubstr("line 2: something follows # EOF"));
  EXPECT_THAT(OpenMetricsError("a  1\n# EOF\n"), HasSubstr("no number"));
  EXPECT_THAT(OpenMetricsError("a{b=\"1\",} 1\n# EOF\n"), HasSubstr("a label's name"));
  EXPECT_THAT(OpenMetricsError("# TYPE a histogram\na_bucket{le=\"1\"} 1\n# EOF\n"),
              HasSubstr("line 3: a histogram without the bucket +Inf"));
}

TEST(ExpositionTest, ContentTypeSaysTheFormat) {
  EXPECT_TRUE(IsOpenMetricsType("application/openmetrics-text; version=1.0.0; charset=utf-8"));
  EXPECT_TRUE(IsOpenMetricsType("Application/OpenMetrics-Text"));
  EXPECT_FALSE(IsOpenMetricsType("text/plain; version=0.0.4"));
  EXPECT_FALSE(IsOpenMetricsType(""));
}

}  // namespace
}  // namespace tacho
