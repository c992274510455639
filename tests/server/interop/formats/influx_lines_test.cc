// The examples with backslashes are those of InfluxDB's reference of the line protocol
// (https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/).
#include "server/interop/formats/influx_lines.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kNow = 1'700'000'000'000'000'000;

InfluxLines Read(absl::string_view text, int64_t unit_ns = 1) {
  auto lines = ReadInfluxLines(text, unit_ns, kNow);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return lines.ok() ? *std::move(lines) : InfluxLines();
}

// Its series as "name{label=value,...}", in the order of the lines.
std::vector<std::string> Series(const InfluxLines& lines) {
  std::vector<std::string> all;
  for (const ForeignSeries& series : lines.write.series) {
    const auto labels = LabelsOfKey(series.key);
    EXPECT_TRUE(labels.ok());
    EXPECT_EQ(labels->front().first, "__name__");
    all.push_back(absl::StrCat(
        labels->front().second, "{",
        absl::StrJoin(labels->begin() + 1, labels->end(), ",", absl::PairFormatter("=")), "}"));
  }
  return all;
}

std::vector<double> Values(const InfluxLines& lines) {
  std::vector<double> values;
  for (const ForeignSample& sample : lines.write.samples) values.push_back(sample.value);
  return values;
}

// The values of fields v=..., or what is wrong.
double ValueOf(const std::string& text) {
  const InfluxLines lines = Read("m v=" + text);
  EXPECT_EQ(lines.problem, "") << text;
  return lines.write.samples.size() == 1 ? lines.write.samples[0].value : -99;
}

// Why the only line is refused, after the line itself.
std::string ProblemOf(const std::string& line, int64_t unit_ns = 1) {
  const InfluxLines lines = Read(line, unit_ns);
  EXPECT_EQ(lines.rejected, 1u) << line;
  EXPECT_THAT(lines.write.series, IsEmpty()) << line;
  EXPECT_THAT(lines.write.samples, IsEmpty()) << line;
  return lines.problem;
}

TEST(InfluxLinesTest, AFieldIsASampleOfMeasurementAndField) {
  const InfluxLines lines = Read("cpu,host=h1,core=3 usage=0.5,temp=61i 1700000000000000007\n");
  EXPECT_THAT(Series(lines), ElementsAre("cpu_usage{host=h1,core=3}", "cpu_temp{host=h1,core=3}"));
  EXPECT_THAT(Values(lines), ElementsAre(0.5, 61));
  for (const ForeignSample& sample : lines.write.samples) EXPECT_EQ(sample.time_ns, kNow + 7);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(lines.write.series[i].first, i);
    EXPECT_EQ(lines.write.series[i].count, 1u);
  }
}

TEST(InfluxLinesTest, AFieldNamedValueIsTheMeasurementItself) {
  EXPECT_THAT(Series(Read("loss value=1,values=2,value_=3")),
              ElementsAre("loss{}", "loss_values{}", "loss_value_{}"));
}

TEST(InfluxLinesTest, EachKindOfFieldHasItsValue) {
  EXPECT_EQ(ValueOf("1"), 1);
  EXPECT_EQ(ValueOf("-1.234456e+78"), -1.234456e+78);
  EXPECT_EQ(ValueOf(".5"), 0.5);
  EXPECT_EQ(ValueOf("0.1"), 0.1);
  EXPECT_EQ(ValueOf("4.9e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(ValueOf("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_TRUE(std::signbit(ValueOf("-0")));
  EXPECT_EQ(ValueOf("-9223372036854775808i"), -9223372036854775808.0);
  EXPECT_EQ(ValueOf("9007199254740992i"), 9007199254740992.0);
  EXPECT_EQ(ValueOf("18446744073709551615u"), 18446744073709551615.0);
  for (const char* yes : {"t", "T", "true", "True", "TRUE"}) EXPECT_EQ(ValueOf(yes), 1);
  for (const char* no : {"f", "F", "false", "False", "FALSE"}) EXPECT_EQ(ValueOf(no), 0);
}

TEST(InfluxLinesTest, WhatIsNoValueIsRefused) {
  for (const char* text : {"NaN",
                           "nan",
                           "inf",
                           "+Inf",
                           "-inf",
                           "infinity",
                           "1e999",
                           "-1e999",
                           "0x10",
                           "1.1.1",
                           "-",
                           "+1",
                           "1e",
                           "9223372036854775808i",
                           "-9223372036854775809i",
                           "18446744073709551616u",
                           "-1u",
                           "1.5i",
                           "1e3i",
                           "i",
                           "u",
                           "1ii",
                           "+1i",
                           "\t1i",
                           "yes",
                           "tRUE",
                           "'a'",
                           "\"\"\"",
                           "\"a",
                           "\"a\"b"}) {
    EXPECT_THAT(ProblemOf(absl::StrCat("m v=", text)), HasSubstr("the field 'v'")) << text;
  }
  EXPECT_THAT(ProblemOf("m v=\"a"), HasSubstr("the text of the field 'v' has no last quote"));
}

TEST(InfluxLinesTest, TextsAreCountedAndLeftOut) {
  const InfluxLines lines =
      Read("m text=\"a b,c=d\",v=1,more=\"say \\\"hi\\\" \\\\\",last=2 5\nm only=\"x\"\n");
  EXPECT_THAT(Series(lines), ElementsAre("m_v{}", "m_last{}"));
  EXPECT_EQ(lines.strings, 3u);
  EXPECT_EQ(lines.rejected, 0u);
}

TEST(InfluxLinesTest, ATextMayHaveNewlines) {
  const InfluxLines lines = Read("m text=\"one\nforged value=1\n\",v=1\nnext v=2\nbad\n");
  EXPECT_THAT(Series(lines), ElementsAre("m_v{}", "next_v{}"));
  EXPECT_THAT(lines.problem, HasSubstr("line 5"));
}

// What a quoted text says is never a line, whatever else is wrong with the line that has it.
TEST(InfluxLinesTest, ATextInABadLineIsNoLineOfItsOwn) {
  for (const char* bad : {"m text=\"\nforged v=1\n\",v=", "m text=\"\nforged v=1\n\" noon",
                          "m text=\"\\\"\nforged v=1\n\" noon", "m a\\ b=\"\nforged v=1\n\" noon",
                          "m,t\\=u=v\\ w text=\"\nforged v=1\n\" noon", "m a=\"\nforged v=1\n"}) {
    const InfluxLines lines = Read(bad);
    EXPECT_THAT(Series(lines), IsEmpty()) << bad;
    EXPECT_EQ(lines.rejected, 1u) << bad;
  }
}

TEST(InfluxLinesTest, BackslashesStandBeforeWhatWouldEndAName) {
  EXPECT_THAT(Series(Read("my\\ measure\\,ment,tag\\ key\\=1=tag\\,value\\=2 field\\=key=1")),
              ElementsAre("my measure,ment_field=key{tag_key_1=tag,value=2}"));
  // Any other backslash is itself, as in paths of Windows.
  EXPECT_THAT(Series(Read("disk\\x\\=,path=C:\\Win\\\\x value=1")),
              ElementsAre("disk\\x\\={path=C:\\Win\\\\x}"));
  EXPECT_THAT(Series(Read("a=b,\"tag\"=\"v\" value=1")), ElementsAre("a=b{_tag_=\"v\"}"));
}

TEST(InfluxLinesTest, TagsThatBecomeOneLabelAreJoined) {
  EXPECT_THAT(Series(Read("m,k8s.pod=a,k8s-pod=b value=1")), ElementsAre("m{k8s_pod=a;b}"));
}

TEST(InfluxLinesTest, WhatIsNoPointIsRefused) {
  const std::pair<const char*, const char*> lines[] = {
      {"m", "no fields"},
      {"m ", "no fields"},
      {",t=a v=1", "the measurement is missing"},
      {"m, v=1", "a tag has no name"},
      {"m,=a v=1", "a tag has no name"},
      {"m,t v=1", "the tag 't' has no value"},
      {"m,t= v=1", "the tag 't' has no value"},
      {"m,t=a=b v=1", "has an = without a backslash"},
      {"m,t=a,t=b v=1", "the tag 't' is there twice"},
      {"m,__name__=a v=1", "__name__"},
      {"m,t=a", "no fields"},
      {"m =1", "a field has no name"},
      {"m v", "the field 'v' has no value"},
      {"m v=", "the field 'v'"},
      {"m v=1,", "a field has no name"},
      {"m v=1,w", "the field 'w' has no value"},
      {"m v=1 noon", "the time 'noon' is no whole number"},
      {"m v=1 1.5", "the time '1.5' is no whole number"},
      {"m v=1 5 6", "the time '5 6' is no whole number"},
      {"m v=1 9223372036854775808", "64 bits of nanoseconds"},
      {"m v=1 -9223372036854775809", "64 bits of nanoseconds"},
  };
  for (const auto& [line, why] : lines) EXPECT_THAT(ProblemOf(line), HasSubstr(why)) << line;
}

TEST(InfluxLinesTest, TimesAreInUnitsOfThePrecision) {
  EXPECT_EQ(Read("m v=1 1700000000", 1'000'000'000).write.samples[0].time_ns, kNow);
  EXPECT_EQ(Read("m v=1 -2", 1'000'000).write.samples[0].time_ns, -2'000'000);
  EXPECT_THAT(ProblemOf("m v=1 1700000000000000000", 1'000), HasSubstr("precision"));
}

TEST(InfluxLinesTest, ALineWithoutATimeHasTheRequests) {
  const InfluxLines lines = Read("m v=1\nm v=2 \n", 1'000'000'000);
  for (const ForeignSample& sample : lines.write.samples) EXPECT_EQ(sample.time_ns, kNow);
}

TEST(InfluxLinesTest, EmptyLinesCommentsBlanksAndCarriageReturnsAreSkipped) {
  const InfluxLines lines =
      Read("\n\r\n# it's =\"open\n  \t\n  # x\r\n \ta v=1  7  \r\nb v=2\r\nc  v=3");
  EXPECT_THAT(Series(lines), ElementsAre("a_v{}", "b_v{}", "c_v{}"));
  EXPECT_EQ(lines.rejected, 0u) << lines.problem;
  EXPECT_EQ(lines.write.samples[0].time_ns, 7);
  EXPECT_THAT(Series(Read("")), IsEmpty());
}

TEST(InfluxLinesTest, BadLinesAreLeftOutAloneAndWhole) {
  const InfluxLines lines = Read("a v=1\n\nb v=1,w=\"x\",u=oops\nc v=3\nd\n");
  EXPECT_THAT(Series(lines), ElementsAre("a_v{}", "c_v{}"));
  EXPECT_THAT(Values(lines), ElementsAre(1, 3));
  EXPECT_EQ(lines.write.series[1].first, 1u);
  EXPECT_EQ(lines.rejected, 2u);
  EXPECT_EQ(lines.strings, 0u);
  EXPECT_THAT(lines.problem,
              HasSubstr("unable to parse line 3, 'b v=1,w=\"x\",u=oops': the field 'u'"));
}

TEST(InfluxLinesTest, AProblemShowsTheBeginningOfAHugeLine) {
  EXPECT_LT(ProblemOf(std::string(1 << 20, 'm')).size(), 400u);
  EXPECT_LT(ProblemOf("m " + std::string(1 << 20, 'f')).size(), 400u);
  EXPECT_LT(ProblemOf("m v=" + std::string(1 << 20, '1') + "x").size(), 500u);
}

TEST(InfluxLinesTest, TagsHaveBounds) {
  const auto with_tags = [](size_t count) {
    std::string line = "m";
    for (size_t i = 0; i < count; ++i) absl::StrAppend(&line, ",t", i, "=v");
    return line + " v=1";
  };
  EXPECT_EQ(Read(with_tags(kMaxInfluxTags)).rejected, 0u);
  EXPECT_THAT(ProblemOf(with_tags(kMaxInfluxTags + 1)), HasSubstr("more than 128 tags"));
  const std::string name(kMaxInfluxKeyBytes, 'm');
  EXPECT_EQ(Read(name + " v=1").rejected, 0u);
  EXPECT_THAT(ProblemOf(name + "m v=1"), HasSubstr("65535 bytes"));
}

// Each field repeats the tags: 60 kB of them and 100,000 fields would be 6 GB.
TEST(InfluxLinesTest, AFewBytesDoNotBecomeGigabytes) {
  std::string line = "m,t=" + std::string(60'000, 'x') + " a=1";
  for (int i = 0; i < 100'000; ++i) line += ",a=1";
  const auto lines = ReadInfluxLines(line, 1, kNow);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(InfluxLinesTest, ARequestHasAtMostAMillionSamples) {
  std::string text = "m v=1";
  for (size_t i = 1; i < ForeignWrite::kMaxSamples; ++i) text += ",v=1";
  EXPECT_EQ(Read(text).write.samples.size(), ForeignWrite::kMaxSamples);
  const auto lines = ReadInfluxLines(text + ",v=1", 1, kNow);
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tacho::server::interop
