// Parameters as clients of Prometheus send them.
#include "server/promread/explore_request.h"

#include <cstdint>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::promread {
namespace {

using testing::HasSubstr;

http::HttpRequest Form(std::string body) {
  http::HttpRequest request;
  request.method = "POST";
  request.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  request.body = std::move(body);
  return request;
}

TEST(ExploreRequestTest, TimesAreSecondsOrRfc3339) {
  EXPECT_EQ(*ParseTimeMs("1.5"), 1500);
  EXPECT_EQ(*ParseTimeMs("1750000000.1234"), 1'750'000'000'123);
  EXPECT_EQ(*ParseTimeMs("-1"), -1000);
  EXPECT_EQ(*ParseTimeMs("2025-06-15T15:06:40.5Z"), 1'750'000'000'500);
  EXPECT_EQ(*ParseTimeMs("2025-06-15T17:06:40+02:00"), 1'750'000'000'000);
  EXPECT_EQ(*ParseTimeMs("1e300"), INT64_MAX);
  EXPECT_EQ(*ParseTimeMs("-1e300"), INT64_MIN);
  EXPECT_EQ(*ParseTimeMs("-292273086-05-16T16:47:06Z"), INT64_MIN);
  EXPECT_EQ(*ParseTimeMs("292277025-08-18T07:12:54.999999999Z"), INT64_MAX);
  for (const char* bad : {"", "now", "nan", "inf", "1 h", "infinite-future", "2025-06-15"}) {
    EXPECT_THAT(ParseTimeMs(bad).status().message(), HasSubstr("is no time")) << bad;
  }
}

TEST(ExploreRequestTest, TheQueryAndTheFormAreReadTogether) {
  http::HttpRequest request = Form("match[]=loss%7Bjob%3D%22a+b%22%7D&start=1&limit=7&other");
  request.query = {{"match[]", "up"}, {"end", "2"}, {"metric", "loss"}};
  const auto asked = ReadExploreRequest(request);
  ASSERT_TRUE(asked.ok()) << asked.status();
  ASSERT_EQ(asked->selectors.size(), 2u);
  EXPECT_EQ(asked->selectors[1].matchers[1].value(), "a b");
  EXPECT_EQ(asked->selectors[1].begin_ms, 1000);
  EXPECT_EQ(asked->selectors[0].end_ms, 2000);
  EXPECT_EQ(asked->limit, 7u);
  EXPECT_EQ(asked->metric, "loss");
}

TEST(ExploreRequestTest, AnErrorNamesTheParameter) {
  const auto text = [](const char* body) {
    const auto asked = ReadExploreRequest(Form(body));
    return asked.ok() ? std::string("taken") : std::string(asked.status().message());
  };
  EXPECT_THAT(text("start=now"), HasSubstr("start: \"now\" is no time"));
  EXPECT_THAT(text("start=2&end=1"), HasSubstr("end: it must not be before start"));
  EXPECT_THAT(text("limit=-1"), HasSubstr("limit: it must be a whole number"));
  EXPECT_THAT(text("limit_per_metric=x"), HasSubstr("limit_per_metric: "));
  EXPECT_THAT(text("match[]={"), HasSubstr("match[]: at character 2 of {: "));
  EXPECT_THAT(text("match[]=%7"), HasSubstr("the form: a '%'"));
  auto json = Form("{}");
  json.headers[0].second = "application/json";
  EXPECT_THAT(ReadExploreRequest(json).status().message(), HasSubstr("Content-Type: "));
}

TEST(ExploreRequestTest, MatchersTogetherHaveALimit) {
  std::string body;
  for (int i = 0; i < kMaxMatchers / 2; ++i) body += "match[]=up{a!=\"b\"}&";
  EXPECT_TRUE(ReadExploreRequest(Form(body)).ok());
  EXPECT_EQ(ReadExploreRequest(Form(body + "match[]=up")).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tacho::server::promread
