#include "client/ring/ring_text.h"

#include "gtest/gtest.h"

namespace tacho::client {
namespace {

TEST(RingTextTest, CleanIsUtf8WithoutControls) {
  for (const char* clean :
       {"", "loss", "gr\u00f6\u00dfe \u20ac \U0001f680", "\u07ff\u0800\ud7ff\ue000"}) {
    EXPECT_TRUE(IsCleanText(clean)) << clean;
  }
  for (const char* bad :
       {"a\nb", "\x7f", "\x80", "\xc0\xaf", "\xc3", "\xe2\x82", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(IsCleanText(bad)) << bad;
  }
  EXPECT_FALSE(IsCleanText(std::string_view("\0", 1)));
}

TEST(RingTextTest, CleaningReplacesAndCutsBetweenCharacters) {
  EXPECT_EQ(CleanText("a\nb\xff"
                      "c",
                      100),
            "a b?c");
  EXPECT_EQ(CleanText("ab\u20ac", 4), "ab");
  EXPECT_EQ(CleanText("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(CleanText("abc", 0), "");
  EXPECT_TRUE(IsCleanText(CleanText("\xe2\x82\xe2\x82\xac\xf0\x9f\r", 100)));
}

TEST(RingTextTest, FileNamesHoldNothingThatLeadsElsewhere) {
  EXPECT_EQ(RingFileName("../a b/\u00e9", 3, 42, 0), "___a_b___.3.42.ring");
  EXPECT_EQ(RingFileName("x", 0, 42, 2), "x.0.42-2.ring");
  EXPECT_LE(RingFileName(std::string(300, 'j'), UINT32_MAX, UINT32_MAX, 15).size(), 255u);
}

}  // namespace
}  // namespace tacho::client
