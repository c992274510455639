#include "storage/index/matcher.h"

#include "gtest/gtest.h"
#include "tests/support/series_maker.h"

namespace tacho::storage {
namespace {

SeriesPtr MakeOne() {
  return MakeSeries({}, {}, {.job = "job", .task = 3, .host = "host-7"},
                    {{"chip", "0"}, {"zone", "a"}});
}

bool Matches(const char* label, Matcher::Op op, const char* value) {
  const auto matcher = Matcher::Create(label, op, value);
  EXPECT_TRUE(matcher.ok()) << matcher.status();
  return matcher->Matches(*MakeOne());
}

TEST(MatcherTest, ComparesLabelsTaskAndHost) {
  EXPECT_TRUE(Matches("chip", Matcher::Op::kEqual, "0"));
  EXPECT_FALSE(Matches("chip", Matcher::Op::kNotEqual, "0"));
  EXPECT_TRUE(Matches("task", Matcher::Op::kEqual, "3"));
  EXPECT_TRUE(Matches("host", Matcher::Op::kMatches, "host-[0-9]+"));
  EXPECT_FALSE(Matches("host", Matcher::Op::kNotMatches, "host-.*"));
}

TEST(MatcherTest, AnAbsentLabelIsTheEmptyValue) {
  EXPECT_TRUE(Matches("pod", Matcher::Op::kEqual, ""));
  EXPECT_TRUE(Matches("pod", Matcher::Op::kNotEqual, "x"));
  EXPECT_TRUE(Matches("pod", Matcher::Op::kMatches, ".*"));
  EXPECT_FALSE(Matches("pod", Matcher::Op::kMatches, ".+"));
}

TEST(MatcherTest, ExpressionsAreAnchoredAtBothEnds) {
  EXPECT_FALSE(Matches("host", Matcher::Op::kMatches, "host"));
  EXPECT_FALSE(Matches("host", Matcher::Op::kMatches, "7"));
}

TEST(MatcherTest, ABadExpressionIsRefusedWithTheReason) {
  const auto matcher = Matcher::Create("host", Matcher::Op::kMatches, "(");
  EXPECT_EQ(matcher.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(matcher.status().ToString().find("host"), std::string::npos);
  EXPECT_FALSE(Matcher::Create("host", Matcher::Op::kMatches, std::string(1 << 20, 'a')).ok());
  EXPECT_FALSE(Matcher::Create("", Matcher::Op::kEqual, "x").ok());
}

}  // namespace
}  // namespace tacho::storage
