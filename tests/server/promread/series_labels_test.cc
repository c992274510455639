#include "server/promread/series_labels.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/promread/read_time.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;
using testing::ElementsAre;
using testing::Pair;

MetricLabels Named(const char* name, storage::MetricType type = storage::MetricType::kGauge) {
  return MetricLabelsOf({name, type, "", ""});
}

LabelList Labels(std::vector<storage::LabelSet::Label> own, std::optional<uint32_t> task = 3,
                 const char* metric_name = "loss") {
  const storage::Metric metric = {metric_name, storage::MetricType::kGauge, "", ""};
  const storage::SeriesSource source = {"x", task, "h1", 0};
  const storage::LabelSet set = {0, std::move(own)};
  return LabelsOf({1, 1, 1, &metric, &source, &set}, 2);
}

TEST(SeriesLabelsTest, ValidNamesStayAndOthersAreThoseOfTheMetricsPage) {
  using storage::MetricType;
  EXPECT_EQ(Named("loss").name, "loss");
  EXPECT_EQ(Named("LearningRate").name, "LearningRate");
  EXPECT_EQ(Named("x_count", MetricType::kCounter).name, "x_count");
  EXPECT_EQ(Named("lag_bucket", MetricType::kHistogram).name, "lag_bucket");
  EXPECT_EQ(Named("loss").metric, "");
  EXPECT_EQ(Named("tpu.hbm.used").name, "tpu_hbm_used");
  EXPECT_EQ(Named("tpu.hbm.used").metric, "tpu.hbm.used");
  EXPECT_EQ(Named("net.bytes", MetricType::kCounter).name, "net_bytes_total");
  EXPECT_EQ(Named("rpc.lag_bucket", MetricType::kHistogram).name, "rpc_lag_bucket");
  EXPECT_EQ(Named("4.x").name, "_4_x");
}

TEST(SeriesLabelsTest, ASeriesHasWhereItComesFromAndItsOwnLabels) {
  EXPECT_THAT(Labels({{"chip", "7"}}),
              ElementsAre(Pair("__name__", "loss"), Pair("attempt", "2"), Pair("chip", "7"),
                          Pair("host", "h1"), Pair("job", "x"), Pair("task", "3")));
  EXPECT_THAT(Labels({}, std::nullopt, "a.b"),
              ElementsAre(Pair("__name__", "a_b"), Pair("attempt", "2"), Pair("host", "h1"),
                          Pair("job", "x"), Pair("metric", "a.b")));
}

TEST(SeriesLabelsTest, OwnLabelsThatClashArePrefixedUntilTheyDoNot) {
  const LabelList labels = Labels({{"attempt", "own"}, {"exported_attempt", "other"}});
  EXPECT_EQ(ValueOf(labels, "attempt"), "2");
  EXPECT_EQ(ValueOf(labels, "exported_attempt"), "other");
  EXPECT_EQ(ValueOf(labels, "exported_exported_attempt"), "own");
}

TEST(SeriesLabelsTest, AnAbsentLabelIsTheEmptyString) {
  const LabelList labels = Labels({}, std::nullopt);
  const auto matches = [&](const char* name, Matcher::Op op, const char* value) {
    return MatchesAll({*Matcher::Create(name, op, value)}, labels);
  };
  EXPECT_TRUE(matches("task", Matcher::Op::kEqual, ""));
  EXPECT_TRUE(matches("chip", Matcher::Op::kMatches, ".*"));
  EXPECT_FALSE(matches("chip", Matcher::Op::kMatches, ".+"));
  EXPECT_TRUE(matches("job", Matcher::Op::kNotMatches, "y"));
  EXPECT_FALSE(MatchesAll({*Matcher::Create("job", Matcher::Op::kEqual, "x"),
                           *Matcher::Create("host", Matcher::Op::kEqual, "h2")},
                          labels));
}

TEST(SeriesLabelsTest, OnlyLabelsThatAreTheStoresOwnNarrowTheIndex) {
  const auto same = [](const char* label) {
    return MeansTheSameInStore(*Matcher::Create(label, Matcher::Op::kEqual, "1"));
  };
  for (const char* label : {"task", "host", "chip"}) EXPECT_TRUE(same(label)) << label;
  for (const char* label : {"__name__", "job", "attempt", "metric", "exported_attempt"}) {
    EXPECT_FALSE(same(label)) << label;
  }
}

TEST(ReadTimeTest, BothEndsOfAQueryAreWholeMilliseconds) {
  const TimeSpan span = TimeSpanOf({.begin_ms = 5, .end_ms = 7});
  EXPECT_EQ(span.begin_ns, 5'000'000);
  EXPECT_EQ(span.end_ns, 8'000'000);
  EXPECT_EQ(MsOf(-1), -1);
  EXPECT_EQ(MsOf(-1'000'000), -1);
  EXPECT_EQ(MsOf(7'999'999), 7);
  const TimeSpan all = TimeSpanOf({.begin_ms = INT64_MIN, .end_ms = INT64_MAX});
  EXPECT_EQ(all.begin_ns, INT64_MIN);
  EXPECT_EQ(all.end_ns, INT64_MAX);
  for (const ReadQuery& none : {ReadQuery{.begin_ms = 2, .end_ms = 1},
                                ReadQuery{.begin_ms = INT64_MAX, .end_ms = INT64_MAX}}) {
    EXPECT_EQ(TimeSpanOf(none).begin_ns, TimeSpanOf(none).end_ns);
  }
}

TEST(ReadTimeTest, TheLastSampleOfAMillisecondStays) {
  LastOfEachMs last;
  EXPECT_FALSE(last.Finish().has_value());
  EXPECT_FALSE(last.Add(1'000'000, 1).has_value());
  EXPECT_FALSE(last.Add(1'999'999, 2).has_value());
  const auto first = last.Add(2'000'000, 3);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->time_ms, 1);
  EXPECT_EQ(first->value, 2);
  EXPECT_EQ(last.Finish()->value, 3);
  EXPECT_FALSE(last.Finish().has_value());
}

}  // namespace
}  // namespace tacho::server::promread
