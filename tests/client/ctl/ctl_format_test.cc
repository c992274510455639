#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/ctl/output/side_by_side.h"
#include "client/ctl/text/dot_canvas.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::ctl {
namespace {

using ::testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(NumberFormatTest, ExactNumbersReadBackBitForBit) {
  for (const double value : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 1e21,
                             123456789.123456789, -2.5e-7}) {
    const double read = std::strtod(ExactNumber(value).c_str(), nullptr);
    EXPECT_EQ(std::memcmp(&read, &value, sizeof value), 0) << ExactNumber(value);
  }
  EXPECT_EQ(ExactNumber(kNaN), "NaN");
  EXPECT_EQ(ExactNumber(-kInfinity), "-Infinity");
}

TEST(NumberFormatTest, ColumnsShareTheirDecimalsWhereSizesAreSimilar) {
  EXPECT_THAT(ReadableColumn({2.5, 0.25, kNaN}), ElementsAre("2.50000", "0.25000", "NaN"));
  EXPECT_THAT(ReadableColumn({1, 20, 300}), ElementsAre("1", "20", "300"));
  EXPECT_THAT(ReadableColumn({1e-9, 12.5}), ElementsAre("1e-09", "12.5"));
  EXPECT_THAT(ReadableColumn({}), ElementsAre());
  EXPECT_THAT(ReadableColumn({kInfinity}), ElementsAre("Infinity"));
  EXPECT_EQ(Thousands(1234567), "1,234,567");
  EXPECT_EQ(Thousands(123), "123");
}

// A hundred percent is all of it, wherever it is printed.
TEST(NumberFormatTest, AShareIsAHundredPercentOnlyIfItIsAll) {
  EXPECT_EQ(ShareText(1), "100.0 %");
  EXPECT_EQ(ShareText(0.99999999), "99.9 %");
  EXPECT_EQ(ShareText(0.9995), "99.9 %");
  EXPECT_EQ(ShareText(0.714), "71.4 %");
  EXPECT_EQ(ShareText(0), "0.0 %");
  EXPECT_EQ(ShareText(1.5), "150.0 %") << "beyond the plan";
}

std::string Written(absl::string_view kind, double value) {
  if (kind == "number") return ReadableNumber(value);
  if (kind == "share") return ShareText(value);
  if (kind == "thousands") return Thousands(static_cast<uint64_t>(value));
  if (kind == "duration") return ReadableDuration(absl::Seconds(value));
  return absl::StrCat("no such kind: ", kind);
}

// The page reads the same file (tests/client/web/format.test.ts).
TEST(NumberFormatTest, TheCollectorsPageWritesTheSame) {
  const std::string path = TACHO_SOURCE_DIR "/tests/client/web/vectors/format.tsv";
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  int lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    ASSERT_EQ(fields.size(), 3) << line;
    EXPECT_EQ(Written(fields[0], std::strtod(fields[1].c_str(), nullptr)), fields[2]) << line;
    ++lines;
  }
  EXPECT_GT(lines, 30);
}

TEST(TimeFormatTest, ExactTimesSortAsTextAndAgesReadWell) {
  EXPECT_EQ(ExactTime(1'769'860'800'000'000'001), "2026-01-31T12:00:00.000000001Z");
  EXPECT_EQ(ReadableDuration(absl::Seconds(200)), "3m 20s");
  EXPECT_EQ(ReadableDuration(absl::Hours(99)), "4d 3h");
  const absl::Time now = absl::FromUnixSeconds(1000);
  EXPECT_EQ(Age(988'000'000'000, now), "12s ago");
  EXPECT_EQ(Age(1'060'000'000'000, now), "in 1m");
}

TEST(JsonTest, NonFiniteNumbersAreStringsAndIntegersAreExact) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginArray();
  json.Value(kNaN);
  json.Value(-kInfinity);
  json.Value(0.1);
  json.Value(std::numeric_limits<int64_t>::min());
  json.Value(std::numeric_limits<uint64_t>::max());
  json.Null();
  json.EndArray();
  EXPECT_EQ(out.str(),
            "[\n  \"NaN\",\n  \"-Infinity\",\n  0.1,\n  -9223372036854775808,\n"
            "  18446744073709551615,\n  null\n]\n");
}

TEST(JsonTest, NestsObjectsInArrays) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Key("a");
  json.BeginArray();
  json.EndArray();
  json.Key("b");
  json.BeginObject();
  json.Key("c");
  json.Value(true);
  json.EndObject();
  json.EndObject();
  EXPECT_EQ(out.str(), "{\n  \"a\": [],\n  \"b\": {\n    \"c\": true\n  }\n}\n");
}

TEST(CsvTest, QuotesOnlyWhereRfc4180Asks) {
  EXPECT_EQ(CsvLine({"plain", "a,b", "say \"hi\"", "two\nlines", ""}),
            "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n");
}

TEST(TextTest, NothingSteersTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31mred\nb\xC2\x9Bx"), "a?[31mred?b?x");
  EXPECT_EQ(Printable("µ"), "µ");
  EXPECT_EQ(DisplayWidth("µ…a"), 3u);
  EXPECT_EQ(Shorten("abcdef", 4, true), "abc…");
  EXPECT_EQ(Shorten("µµµµ", 3, false), "µµ~");
  EXPECT_EQ(Shorten("abc", 3, true), "abc");
}

std::string Print(const Table& table, size_t width) {
  std::ostringstream out;
  table.Print(out, width, true);
  return out.str();
}

TEST(TableTest, NumbersStandRightAndNoLineEndsInBlanks) {
  Table table({{"JOB"}, {"STEP", Align::kRight}, {"NOTE"}});
  table.AddRow({"bert", "7", ""});
  table.AddRow({"a", "1200", "x"});
  EXPECT_EQ(Print(table, 0),
            "JOB   STEP  NOTE\n"
            "bert     7\n"
            "a     1200  x\n");
}

TEST(TableTest, ShortensNamesButNeverNumbers) {
  Table table({{"JOB", Align::kLeft, true}, {"STEP", Align::kRight}});
  table.AddRow({std::string(40, 'j'), "123456789"});
  EXPECT_EQ(Print(table, 25), "JOB                  STEP\njjjjjjjjjjjjj…  123456789\n");
  EXPECT_THAT(Print(table, 5), ::testing::HasSubstr("jjjjjjjjjjj…  123456789"));
}

TEST(SparklineTest, ShowsCourseAndNonFiniteValues) {
  EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 60, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({0, kNaN, 7}, 60, true), "▁×█");
  EXPECT_EQ(Sparkline({0, kInfinity, 7}, 60, false), "_!#");
  EXPECT_EQ(Sparkline({5, 5}, 60, true), "▅▅");
  EXPECT_EQ(DisplayWidth(Sparkline(std::vector<double>(1000, 1.0), 20, true)), 20u);
  EXPECT_EQ(Sparkline({-1.7e308, 1.7e308}, 60, true), "▁█") << "the span overflows a double";
  EXPECT_EQ(Sparkline({}, 60, true), "");
}

v1::SeriesInfo Series(const std::string& metric, uint32_t task, const std::string& host) {
  v1::SeriesInfo info;
  info.mutable_metric()->set_name(metric);
  info.set_task(task);
  info.set_host(host);
  return info;
}

TEST(SeriesNameTest, ShortNamesSayOnlyWhatDiffers) {
  const v1::SeriesInfo a = Series("loss", 0, "h0");
  const v1::SeriesInfo b = Series("loss", 1, "h1");
  const v1::SeriesInfo c = Series("grad_norm", 0, "h0");
  EXPECT_THAT(ShortNames({&a}), ElementsAre("loss"));
  EXPECT_THAT(ShortNames({&a, &b}), ElementsAre("task 0", "task 1"));
  EXPECT_THAT(ShortNames({&a, &c}), ElementsAre("loss", "grad_norm"));
  EXPECT_EQ(FullName(a), "loss{task=\"0\",host=\"h0\"}");
}

SampleSeries Points(std::vector<int64_t> steps) {
  SampleSeries series;
  for (const int64_t step : steps) {
    series.points.push_back({.time_unix_ns = step * 10, .step = step, .value = 1});
  }
  return series;
}

TEST(SideBySideTest, PointsMeetAtEqualKeys) {
  EXPECT_THAT(*JoinPoints({Points({1, 2, 3}), Points({2})}, true),
              ElementsAre(ElementsAre(0u, kNone), ElementsAre(1u, 0u), ElementsAre(2u, kNone)));
  EXPECT_FALSE(JoinPoints({Points({1, 2}), Points({3, 4})}, true)) << "mostly holes";
  EXPECT_FALSE(JoinPoints({Points({1, 1}), Points({1})}, true)) << "two attempts of a step";
  SampleSeries no_steps = Points({1});
  no_steps.points[0].step.reset();
  EXPECT_FALSE(JoinPoints({no_steps}, true));
}

SampleSeries Buckets(std::vector<std::pair<int64_t, int64_t>> ranges) {
  SampleSeries series;
  for (const auto& [first, last] : ranges) {
    series.buckets.push_back({.first_time_unix_ns = first, .last_time_unix_ns = last});
  }
  return series;
}

TEST(SideBySideTest, BucketsMeetUnlessTheyReachIntoEachOther) {
  EXPECT_EQ(JoinBuckets({Buckets({{0, 4}, {5, 9}}), Buckets({{1, 3}, {6, 8}})}, false)->size(), 2u);
  EXPECT_FALSE(JoinBuckets({Buckets({{0, 4}, {5, 9}}), Buckets({{0, 5}, {6, 9}})}, false));
  EXPECT_FALSE(JoinBuckets({Buckets({{0, 4}}), Buckets({{0, 4}, {5, 9}})}, false));
}

}  // namespace
}  // namespace tacho::ctl
