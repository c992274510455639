// Bytes that are to be text.
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "proto/base/json_text.h"
#include "proto/base/utf8.h"

namespace tacho {
namespace {

TEST(JsonTextTest, EscapesAndStaysUtf8) {
  EXPECT_EQ(JsonString("a\"b\\c\n\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"");
  EXPECT_EQ(JsonString("µ…😀"), "\"µ…😀\"");
  EXPECT_EQ(JsonString("x\xFFy\xC3"), "\"x\xEF\xBF\xBDy\xEF\xBF\xBD\"");
  EXPECT_EQ(JsonString("\xED\xA0\x80").find("\xED"), std::string::npos) << "a surrogate";
}

TEST(JsonTextTest, ValidTextStaysAsItIs) {
  EXPECT_EQ(ValidUtf8("µ…😀\n"), "µ…😀\n");
  EXPECT_EQ(ValidUtf8("a\xF0\x9F\x98"), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

Utf8Character First(absl::string_view text) { return FirstUtf8(text.data(), text.size()); }

TEST(Utf8Test, TakesOneCharacterFromTheFront) {
  EXPECT_EQ(First("ab").bytes, 1u);
  EXPECT_EQ(First("µx").code, 0xb5u);
  EXPECT_EQ(First("…").bytes, 3u);
  EXPECT_EQ(First("😀").code, 0x1f600u);
}

TEST(Utf8Test, RefusesEverythingElse) {
  for (const char* bytes :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc2", "\xe2\x98", "\xc2\x41"}) {
    EXPECT_FALSE(First(bytes).valid) << ::testing::PrintToString(bytes);
    EXPECT_EQ(First(bytes).bytes, 1u);
    EXPECT_FALSE(IsUtf8(std::string("12345678") + bytes)) << ::testing::PrintToString(bytes);
  }
  EXPECT_TRUE(IsUtf8(absl::string_view("12345678\xc2\x80")));
}

}  // namespace
}  // namespace tacho
