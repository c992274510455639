// The text equals what prometheus-cpp's own serializer writes.
#include "server/http/family_text.h"

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace tacho::server::http {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string TextOf(const std::vector<MetricFamily>& families) {
  std::string page;
  AppendFamilies(families, &page);
  return page;
}

// The same lines, but that the library rounds to 16 digits.
void ExpectAsTheLibrary(const std::vector<MetricFamily>& families) {
  const std::vector<std::string> ours = absl::StrSplit(TextOf(families), '\n');
  const std::vector<std::string> theirs =
      absl::StrSplit(prometheus::TextSerializer().Serialize(families), '\n');
  ASSERT_EQ(ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const size_t space = theirs[i].rfind(' ');
    ASSERT_NE(space, std::string::npos) << ours[i];
    ASSERT_EQ(ours[i].substr(0, space + 1), theirs[i].substr(0, space + 1));
    double our_value = 0, their_value = 0;
    ASSERT_TRUE(absl::SimpleAtod(ours[i].substr(space + 1), &our_value)) << ours[i];
    ASSERT_TRUE(absl::SimpleAtod(theirs[i].substr(space + 1), &their_value)) << theirs[i];
    EXPECT_DOUBLE_EQ(our_value, their_value) << ours[i];
  }
}

TEST(FamilyText, EveryTypeIsWrittenAsTheLibraryWritesIt) {
  prometheus::Registry registry;
  auto& counters = prometheus::BuildCounter().Name("c_total").Help("Counts.").Register(registry);
  counters.Add({}).Increment(3);
  counters.Add({{"a", "1"}, {"b", "2"}}).Increment(1e18);
  auto& gauges = prometheus::BuildGauge().Name("g").Help("").Register(registry);
  gauges.Add({{"x", "y"}}).Set(0.1 + 0.2);
  gauges.Add({{"x", "z"}}).Set(-0.0);
  auto& histograms = prometheus::BuildHistogram().Name("h").Help("Spread.").Register(registry);
  auto& histogram = histograms.Add({{"k", "v"}}, std::vector<double>{0.1, 1, 2.5});
  for (const double value : {0.05, 0.5, 2.0, 100.0}) histogram.Observe(value);
  histograms.Add({}, std::vector<double>{1}).Observe(7);
  auto& summaries = prometheus::BuildSummary().Name("s").Help("Ranks.").Register(registry);
  auto& summary = summaries.Add({{"k", "v"}}, prometheus::Summary::Quantiles{{0.5, 0.01}});
  for (int i = 0; i < 9; ++i) summary.Observe(i);
  ExpectAsTheLibrary(registry.Collect());
}

TEST(FamilyText, NumbersReadBackAsTheSame) {
  MetricFamily family{"n", "", MetricType::Untyped, {}};
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0.0,  1.0,  -1e5,          1e-300,    5e-324,
                                      0.3,  1e22, 123456789.125, 0.1 + 0.2, 1.7976931348623157e308,
                                      kInf, -kInf};
  for (const double value : values) family.metric.emplace_back().untyped.value = value;
  const std::vector<std::string> lines = absl::StrSplit(TextOf({family}), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), values.size() + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    double read = 0;
    ASSERT_TRUE(absl::SimpleAtod(lines[i + 1].substr(2), &read)) << lines[i + 1];
    EXPECT_EQ(read, values[i]) << lines[i + 1];
  }
  family.metric = {{}};
  family.metric.back().untyped.value = std::nan("");
  family.metric.back().timestamp_ms = 1700000000123;
  EXPECT_EQ(TextOf({family}), "# TYPE n untyped\nn NaN 1700000000123\n");
}

TEST(FamilyText, WholeNumbersHaveNoExponent) {
  MetricFamily family{"n", "", MetricType::Gauge, {}};
  for (const double value : {1e5, 10'000'000.0, -1e14, 1e15}) {
    family.metric.emplace_back().gauge.value = value;
  }
  EXPECT_EQ(TextOf({family}),
            "# TYPE n gauge\nn 100000\nn 10000000\nn -100000000000000\nn 1e+15\n");
}

TEST(FamilyText, ABucketOfAllIsNotWrittenTwice) {
  MetricFamily family{"h", "Spread.", MetricType::Histogram, {}};
  auto& histogram = family.metric.emplace_back().histogram;
  histogram.sample_count = 2;
  histogram.bucket = {{1, 0.5}, {2, std::numeric_limits<double>::infinity()}};
  ExpectAsTheLibrary({family});
  EXPECT_EQ(TextOf({family}).find("+Inf"), TextOf({family}).rfind("+Inf"));
}

TEST(FamilyText, LabelsCannotLeaveTheirQuotesNorHelpItsLine) {
  MetricFamily family{"g", "One\nline \\ of \"help\".", MetricType::Gauge, {}};
  family.metric.emplace_back().label = {{"a", "\"} 1\nevil 2\\"}, {"b", ""}};
  ExpectAsTheLibrary({{family.name, "", family.type, family.metric}});
  EXPECT_EQ(TextOf({family}),
            "# HELP g One\\nline \\\\ of \"help\".\n# TYPE g gauge\n"
            "g{a=\"\\\"} 1\\nevil 2\\\\\",b=\"\"} 0\n");
}

}  // namespace
}  // namespace tacho::server::http
