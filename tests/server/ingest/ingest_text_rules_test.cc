#include <string>

#include "gtest/gtest.h"
#include "proto/base/utf8.h"
#include "server/ingest/text_rules.h"

namespace tacho::server::ingest {
namespace {

TEST(TextRulesTest, Utf8TakesEveryLengthOfCodePoint) {
  for (const char* text : {"", "a", "é", "€", "😀", "\x7f", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(absl::string_view("a\0b", 3)));
}

TEST(TextRulesTest, Utf8RefusesWhatTheStandardRefuses) {
  for (const char* text : {"\x80", "\xc3", "\xc0\xaf", "\xc1\xbf", "\xe2\x82", "\xe0\x9f\xbf",
                           "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "a\xff", "\xc3(", "\xe2(\xa1"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(TextRulesTest, Utf8IsLookedAtInEveryPlace) {
  for (size_t before = 0; before < 20; ++before) {
    const std::string text(before, 'a');
    EXPECT_TRUE(IsUtf8(text + "\xc3\xa9" + text)) << before;
    EXPECT_FALSE(IsUtf8(text + "\xc3" + text)) << before;
    EXPECT_FALSE(IsUtf8(text + "\xff")) << before;
  }
}

TEST(TextRulesTest, LengthsCountBytesAndTheirEdgesPass) {
  EXPECT_EQ(TextProblem("", 0, 3), "");
  EXPECT_EQ(TextProblem("abc", 1, 3), "");
  EXPECT_EQ(TextProblem("", 1, 3), "must not be empty");
  EXPECT_EQ(TextProblem("éé", 1, 3), "has 4 bytes; at most 3 are allowed");
  EXPECT_EQ(TextProblem("\xff", 1, 3), "is not valid UTF-8");
}

TEST(TextRulesTest, LabelNames) {
  for (const char* name : {"a", "_", "_a", "chip", "Chip_0", "jobs"}) {
    EXPECT_EQ(LabelNameProblem(name), "") << name;
  }
  for (const char* name : {"", "0a", "a-b", "a.b", "é", "job", "task", "host", "__a", "__"}) {
    EXPECT_NE(LabelNameProblem(name), "") << name;
  }
  EXPECT_EQ(LabelNameProblem(std::string(128, 'a')), "");
  EXPECT_NE(LabelNameProblem(std::string(129, 'a')), "");
}

TEST(TextRulesTest, MetricNamesMayHaveSpacesButNoControlCharacters) {
  EXPECT_EQ(MetricNameProblem("Loss/total (avg) %"), "");
  EXPECT_EQ(MetricNameProblem("θ"), "");
  EXPECT_NE(MetricNameProblem("a\tb"), "");
  EXPECT_NE(MetricNameProblem("\x7f"), "");
}

}  // namespace
}  // namespace tacho::server::ingest
