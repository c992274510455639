// Selectors as people and tools write them.
#include "server/promread/selector_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/promread/read_request.h"

namespace tacho::server::promread {
namespace {

using testing::HasSubstr;

// name op value, in a line.
std::string Shown(absl::string_view text) {
  const auto matchers = ParseSelector(text);
  if (!matchers.ok()) return std::string(matchers.status().message());
  std::string shown;
  for (const storage::Matcher& matcher : *matchers) {
    constexpr const char* kOps[] = {"=", "!=", "=~", "!~"};
    absl::StrAppend(&shown, shown.empty() ? "" : " ", matcher.label(),
                    kOps[static_cast<int>(matcher.op())], matcher.value());
  }
  return shown;
}

TEST(SelectorTextTest, MetricsAndMatchersOfEachKind) {
  EXPECT_EQ(Shown("loss"), "__name__=loss");
  EXPECT_EQ(Shown(" a:b_9 {} "), "__name__=a:b_9");
  EXPECT_EQ(Shown(R"(loss{job="x",task!="0", host=~"h.*" ,chip!~'1|2',})"),
            "__name__=loss job=x task!=0 host=~h.* chip!~1|2");
  EXPECT_EQ(Shown(R"({__name__=~"a|b"})"), "__name__=~a|b");
  EXPECT_EQ(Shown(R"({__name__!=""})"), "__name__!=") << "Grafana's way to ask for everything";
  EXPECT_EQ(Shown(R"({"a.b", "c.d"="e"})"), "__name__=a.b c.d=e");
}

TEST(SelectorTextTest, QuotesHaveGosEscapes) {
  EXPECT_EQ(Shown(R"({a="\"\\\n\t\x41\101\u00e9\U0001F600'"})"), "a=\"\\\n\tAA\u00e9\U0001F600'");
  EXPECT_EQ(Shown(R"({a='\'"'})"), "a='\"");
  EXPECT_EQ(Shown("{a=`\\d\n\"`}"), "a=\\d\n\"");
}

TEST(SelectorTextTest, AnErrorNamesThePlace) {
  EXPECT_EQ(Shown("{a=x}"), "at character 4 of {a=x}: a value in quotes is missing");
  EXPECT_EQ(Shown(""), "at character 1 of : a metric or a '{' is missing");
  EXPECT_EQ(Shown("{a\"x\"}"), "at character 3 of {a\"x\"}: one of = != =~ !~ is missing");
  EXPECT_THAT(Shown(R"({a="x" b="y"})"), HasSubstr("at character 8 of "));
  EXPECT_THAT(Shown(R"({a="x")"), HasSubstr("at character 7 of {a=\"x\": a ',' or '}' is missing"));
  EXPECT_THAT(Shown(R"({a="x)"), HasSubstr("at character 4 of {a=\"x: this quote has no end"));
  EXPECT_THAT(Shown("{a=\"x\n\"}"), HasSubstr("at character 6"));
  EXPECT_THAT(Shown(R"({a="\q"})"), HasSubstr("at character 5 of {a=\"\\q\"}: there is no such"));
  EXPECT_THAT(Shown(R"({a="\'"})"), HasSubstr("no such escape"));
  EXPECT_THAT(Shown(R"({a="\x4"})"), HasSubstr("needs 2 digits"));
  EXPECT_THAT(Shown(R"({a="\400"})"), HasSubstr("no byte"));
  EXPECT_THAT(Shown(R"({a="\uD800"})"), HasSubstr("no character"));
  EXPECT_THAT(Shown(R"({,})"), HasSubstr("at character 2 of {,}: the name of a label is missing"));
  EXPECT_THAT(Shown("loss[5m]"), HasSubstr("at character 5 of loss[5m]: a selector ends before"));
  EXPECT_THAT(Shown(R"(loss{__name__="x"})"), HasSubstr("names its metric twice"));
  EXPECT_THAT(Shown(R"({__name__="x","y"})"), HasSubstr("names its metric twice"));
  EXPECT_THAT(Shown(R"({a=~"("})"), HasSubstr("at character 2 of {a=~\"(\"}: matcher on label"));
  EXPECT_THAT(Shown(R"({""="x"})"), HasSubstr("the name of a label is empty"));
  EXPECT_THAT(Shown(absl::StrCat("{", std::string(500, 'a'), "}")), HasSubstr("…: one of"));
}

TEST(SelectorTextTest, ASelectorOfEverythingIsRefusedAsPrometheusDoesIt) {
  for (const char* text : {"{}", R"({a=""})", R"({a=~".*"})", R"({a!="x"})"}) {
    EXPECT_THAT(Shown(text), HasSubstr("needs a matcher")) << text;
  }
}

TEST(SelectorTextTest, MatchersAndBytesHaveLimits) {
  std::string text = "{";
  for (int i = 0; i < kMaxMatchers; ++i) absl::StrAppend(&text, "a=\"x\",");
  EXPECT_TRUE(ParseSelector(text + "}").ok());
  EXPECT_EQ(ParseSelector(text + "a=\"x\"}").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ParseSelector(std::string(kMaxSelectorBytes + 1, 'a')).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tacho::server::promread
