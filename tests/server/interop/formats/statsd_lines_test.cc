// What lines of StatsD and DogStatsD mean, and which are left out.
#include "server/interop/formats/statsd_lines.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/interop/formats/foreign_write.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Kind = StatsdPoint::Kind;

StatsdPoint Only(const std::string& line) {
  StatsdLines lines = ReadStatsdLines(line);
  EXPECT_EQ(lines.points.size(), 1u) << line << ": " << lines.problem;
  return lines.points.empty() ? StatsdPoint() : lines.points.front();
}

storage::Labels TagsOf(const std::string& line) { return *LabelsOfKey(Only(line).labels); }

TEST(StatsdLinesTest, EachTypeIsRead) {
  const std::pair<const char*, Kind> types[] = {{"c", Kind::kCounter},
                                                {"g", Kind::kGauge},
                                                {"ms", Kind::kTimer},
                                                {"h", Kind::kTimer},
                                                {"d", Kind::kTimer}};
  for (const auto& [type, kind] : types) {
    const StatsdPoint point = Only(absl::StrCat("a.b:2.5|", type));
    EXPECT_EQ(point.kind, kind) << type;
    EXPECT_EQ(point.name, "a.b");
    EXPECT_THAT(point.values, ElementsAre(2.5));
    EXPECT_EQ(point.milliseconds, type == std::string("ms"));
  }
  const StatsdPoint set = Only("users:a:b|s");
  EXPECT_EQ(set.kind, Kind::kSet);
  EXPECT_EQ(set.member, "a:b");
}

TEST(StatsdLinesTest, AGaugeWithASignChangesIt) {
  EXPECT_FALSE(Only("a:3|g").changes);
  EXPECT_TRUE(Only("a:+3|g").changes);
  EXPECT_TRUE(Only("a:-3|g").changes);
  EXPECT_FALSE(Only("a:-3|ms").changes);
  EXPECT_EQ(ReadStatsdLines("a:3:-3|g").rejected, 1u);
}

TEST(StatsdLinesTest, PackedValuesShareWhatFollows) {
  const StatsdPoint point = Only("a:1:2.5:-3|h|@0.5|#x:y");
  EXPECT_THAT(point.values, ElementsAre(1, 2.5, -3));
  EXPECT_EQ(point.rate, 0.5);
}

TEST(StatsdLinesTest, TagsAreLabelsInOneOrder) {
  EXPECT_THAT(TagsOf("a:1|c|#job:bert,a-b:x:y,eval,,none:"),
              ElementsAre(Pair("a_b", "x:y"), Pair("eval", "true"), Pair("job", "bert")));
  EXPECT_EQ(Only("a:1|c|#x:1,y:2").labels, Only("a:1|c|#y:2,x:1").labels);
  EXPECT_THAT(TagsOf("a:1|c|#x:1,x:2"), ElementsAre(Pair("x", "1;2")));
}

TEST(StatsdLinesTest, ContainersAreLeftOutAndTimesAreRead) {
  const StatsdPoint point = Only("a:1|g|c:ci-1f2e|T1700000000|e:it-false|card:low|#x:1");
  EXPECT_EQ(point.time_ns, 1'700'000'000'000'000'000);
  EXPECT_THAT(*LabelsOfKey(point.labels), ElementsAre(Pair("x", "1")));
}

TEST(StatsdLinesTest, EventsAndServiceChecksAreCounted) {
  const auto lines = ReadStatsdLines("_e{2,3}:ab|cde|#x\n_sc|db|0\na:1|c\n");
  EXPECT_EQ(lines.events, 1u);
  EXPECT_EQ(lines.service_checks, 1u);
  EXPECT_EQ(lines.points.size(), 1u);
  EXPECT_EQ(lines.rejected, 0u);
}

TEST(StatsdLinesTest, BadLinesAreLeftOutAndTheOthersAreRead) {
  for (const std::string bad : {"a",          "a:1",
                                "a|c",        ":1|c",
                                "a:|c",       "a:1|",
                                "a:1|x",      "a:nan|g",
                                "a:inf|g",    "a:0x10|g",
                                "a:1e999|g",  "a:1:|c",
                                "a:-1|c",     "a:|s",
                                "a:1|c|@0",   "a:1|c|@2",
                                "a:1|c|@nan", "a:1|c|T-1",
                                "a:1|g|Tx",   "a:1|g|T99999999999999999",
                                "a:1|c|?",    "a:1|c|#__name__:b",
                                "a:1|c|#:b"}) {
    const auto lines = ReadStatsdLines("x:1|c\r\n" + bad + "\ny:2|c");
    EXPECT_EQ(lines.rejected, 1u) << bad;
    EXPECT_THAT(lines.problem, HasSubstr("'")) << bad;
    EXPECT_EQ(lines.points.size(), 2u) << bad;
  }
  EXPECT_THAT(ReadStatsdLines("").points, IsEmpty());
}

TEST(StatsdLinesTest, NamesAndTagsHaveBounds) {
  const auto line = [](size_t bytes) { return std::string(bytes, 'a') + ":1|c"; };
  EXPECT_EQ(ReadStatsdLines(line(kMaxStatsdKeyBytes)).rejected, 0u);
  EXPECT_EQ(ReadStatsdLines(line(kMaxStatsdKeyBytes + 1)).rejected, 1u);
  std::string tags = "a:1|c|#";
  for (size_t i = 0; i < kMaxStatsdTags; ++i) absl::StrAppend(&tags, "t", i, ":v,");
  EXPECT_EQ(ReadStatsdLines(tags).rejected, 0u);
  EXPECT_EQ(ReadStatsdLines(tags + "one:more").rejected, 1u);
}

}  // namespace
}  // namespace tacho::server::interop
