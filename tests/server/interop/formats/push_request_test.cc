#include "server/interop/formats/push_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "server/interop/formats/label_mapping.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr int64_t kTime = 1'700'000'000'500'000'000;

std::string PathError(absl::string_view path) {
  const auto labels = ReadPushPath(path);
  EXPECT_TRUE(absl::IsInvalidArgument(labels.status())) << path;
  return std::string(labels.status().message());
}

absl::StatusOr<PushedLines> Read(absl::string_view body, PushForm form = PushForm::kText) {
  return ReadPushedLines(body, form, {{"job", "eval"}, {"shard", "3"}}, kTime);
}

std::string LineError(absl::string_view body) {
  const auto lines = Read(body);
  EXPECT_TRUE(absl::IsInvalidArgument(lines.status())) << body;
  return std::string(lines.status().message());
}

TEST(PushPathTest, NamesTheGroup) {
  EXPECT_THAT(*ReadPushPath("/metrics/job/eval"), ElementsAre(Pair("job", "eval")));
  EXPECT_THAT(*ReadPushPath("/metrics/job/eval/shard/3/host/h1"),
              ElementsAre(Pair("host", "h1"), Pair("job", "eval"), Pair("shard", "3")));
  EXPECT_THAT(*ReadPushPath("/metrics/job/eval/shard/"),
              ElementsAre(Pair("job", "eval"), Pair("shard", "")));
}

// The examples of the Pushgateway's README.md, and padding that its clients may leave out.
TEST(PushPathTest, TakesBase64) {
  EXPECT_THAT(*ReadPushPath("/metrics/job/directory_cleaner/path@base64/L3Zhci90bXA"),
              ElementsAre(Pair("job", "directory_cleaner"), Pair("path", "/var/tmp")));
  EXPECT_THAT(
      *ReadPushPath("/metrics/job@base64/zqDPgc6_zrzOt864zrXPjc-C/path@base64/L3Zhci90bXA="),
      ElementsAre(Pair("job", "Προμηθεύς"), Pair("path", "/var/tmp")));
  EXPECT_THAT(*ReadPushPath("/metrics/job/eval/shard@base64/="),
              ElementsAre(Pair("job", "eval"), Pair("shard", "")));
}

TEST(PushPathTest, SaysWhichPartIsWrong) {
  EXPECT_THAT(PathError("/metrics/jobs/eval"), HasSubstr("/metrics/job/JOB"));
  EXPECT_THAT(PathError("/metrics/job"), HasSubstr("/metrics/job/JOB"));
  EXPECT_THAT(PathError("/metrics/job/"), HasSubstr("job is empty"));
  EXPECT_THAT(PathError("/metrics/job@base64/="), HasSubstr("job is empty"));
  EXPECT_THAT(PathError("/metrics/job/eval/shard"), HasSubstr("shard has no value"));
  EXPECT_THAT(PathError("/metrics/job/eval//3"), HasSubstr("\"\" in the path"));
  EXPECT_THAT(PathError("/metrics/job/eval/2nd/3"), HasSubstr("\"2nd\" in the path"));
  EXPECT_THAT(PathError("/metrics/job/eval/__name__/3"), HasSubstr("\"__name__\" in the path"));
  EXPECT_THAT(PathError("/metrics/job/eval/a/1/a/2"), HasSubstr("label a twice"));
  EXPECT_THAT(PathError("/metrics/job/eval/job/other"), HasSubstr("label job twice"));
  EXPECT_THAT(PathError("/metrics/job/eval/path@base64/%%%"), HasSubstr("path is no base64url"));
  EXPECT_THAT(PathError("/metrics/job@base64/_w"), HasSubstr("job is no UTF-8"));
}

TEST(PushedLinesTest, ALineHasTheLabelsOfItsGroup) {
  const auto lines = Read("accuracy{shard=\"9\",set=\"test\"} 0.93");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->series.size(), 2u);
  EXPECT_THAT(*LabelsOfKey(lines->series[0].key),
              ElementsAre(Pair("__name__", "accuracy"), Pair("job", "eval"), Pair("set", "test"),
                          Pair("shard", "3")));
  EXPECT_EQ(lines->series[0].name, "accuracy");
  EXPECT_EQ(lines->write.samples[0].value, 0.93);
  EXPECT_EQ(lines->write.samples[0].time_ns, kTime);
}

TEST(PushedLinesTest, EachPushHasItsTime) {
  const auto lines = Read("");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->series.size(), 1u);
  EXPECT_THAT(
      *LabelsOfKey(lines->series[0].key),
      ElementsAre(Pair("__name__", "push_time_seconds"), Pair("job", "eval"), Pair("shard", "3")));
  EXPECT_EQ(lines->write.samples[0].value, 1'700'000'000.5);
}

TEST(PushedLinesTest, ATypeIsTakenOver) {
  const auto lines = Read(
      "# TYPE rows counter\n# HELP rows Rows read.\nrows 5\n# TYPE depth_total gauge\n"
      "depth_total 2\n# TYPE t histogram\nt_bucket{le=\"+Inf\"} 1\nt_sum 2\nt_count 1\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto metric_of = [&](size_t i) {
    const ForeignMetric* const told = lines->write.series[i].metric;
    return told == nullptr ? ForeignMetric() : *told;
  };
  EXPECT_TRUE(metric_of(0).typed);
  EXPECT_EQ(metric_of(0).type, storage::MetricType::kCounter);
  EXPECT_EQ(metric_of(0).help, "Rows read.");
  EXPECT_EQ(metric_of(1).type, storage::MetricType::kGauge);
  EXPECT_FALSE(metric_of(2).typed) << "the name decides";
  for (size_t i : {2, 3, 4}) EXPECT_EQ(lines->series[i].name, "t") << "POST replaces it whole";
}

TEST(PushedLinesTest, TakesOpenMetrics) {
  const auto lines =
      Read("# TYPE rows counter\nrows_total 5\nrows_created 1\n# EOF\n", PushForm::kOpenMetrics);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(lines->series.size(), 3u);
  EXPECT_EQ(lines->write.series[1].metric, nullptr) << "a time is no counter";
  EXPECT_FALSE(Read("rows_total 5\n", PushForm::kOpenMetrics).ok()) << "its end is missing";
}

TEST(PushedLinesTest, SaysWhichLineIsWrong) {
  EXPECT_THAT(LineError("a 1\nb one\n"), HasSubstr("line 2"));
  EXPECT_THAT(LineError("a 1 1700000000000\n"), HasSubstr("a line of a has a time"));
  EXPECT_THAT(LineError("push_time_seconds 1\n"), HasSubstr("written by the collector"));
  EXPECT_THAT(LineError("a{shard=\"1\"} 1\na{shard=\"2\"} 2\n"), HasSubstr("two lines of a"));
  EXPECT_THAT(LineError("a{__name__=\"b\"} 1\n"), HasSubstr("__name__"));
  EXPECT_THAT(LineError("a{x=\"\xff\"} 1\n"), HasSubstr("UTF-8"));
}

// A path of 8 KiB stands before each of the lines.
TEST(PushedLinesTest, ALongPathDoesNotMultiply) {
  std::string body;
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&body, "a", i, " 1\n");
  const auto lines = ReadPushedLines(body, PushForm::kText,
                                     {{"job", "eval"}, {"long", std::string(8000, 'x')}}, kTime);
  EXPECT_TRUE(absl::IsResourceExhausted(lines.status())) << lines.status();
}

TEST(PushedLinesTest, EndsAreStaleMarkers) {
  ForeignWrite write;
  ASSERT_TRUE(AddEnds({"one", "two"}, kTime, &write).ok());
  ASSERT_EQ(write.series.size(), 2u);
  EXPECT_EQ(write.series[1].key, "two");
  EXPECT_TRUE(IsStaleMarker(write.samples[1].value));
}

}  // namespace
}  // namespace tacho::server::interop
