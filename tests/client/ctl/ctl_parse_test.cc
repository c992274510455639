#include <limits>

#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/flags.h"

namespace tacho::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'769'860'800);  // 2026-01-31T12:00:00Z

int64_t Nanos(absl::string_view text, absl::TimeZone zone = absl::UTCTimeZone()) {
  const auto time = ParseTime(text, kNow, zone);
  return time.ok() ? absl::ToUnixNanos(*time) : -1;
}

TEST(TimeParseTest, ReadsEveryDocumentedForm) {
  constexpr int64_t kNoon = 1'769'860'800'000'000'000;
  constexpr int64_t kHour = 3'600'000'000'000;
  EXPECT_EQ(Nanos("now"), kNoon);
  EXPECT_EQ(Nanos("2h ago"), kNoon - 2 * kHour);
  EXPECT_EQ(Nanos("today"), kNoon - 12 * kHour);
  EXPECT_EQ(Nanos("yesterday"), kNoon - 36 * kHour);
  EXPECT_EQ(Nanos("2026-01-31T12:00:00Z"), kNoon);
  EXPECT_EQ(Nanos("2026-01-31T13:00:00+01:00"), kNoon);
  EXPECT_EQ(Nanos("2026-01-31"), kNoon - 12 * kHour);
  EXPECT_EQ(Nanos("2026-01-31 12:00"), kNoon);
  EXPECT_EQ(Nanos("1769860800"), kNoon);
  EXPECT_EQ(Nanos("@1769860800"), kNoon);
}

TEST(TimeParseTest, KeepsEveryNanosecond) {
  EXPECT_EQ(Nanos("1769860800.123456789"), 1'769'860'800'123'456'789);
  EXPECT_EQ(Nanos("2026-01-31T12:00:00.123456789Z"), 1'769'860'800'123'456'789);
  EXPECT_EQ(Nanos("2026-01-31 12:00:00.000000001"), 1'769'860'800'000'000'001);
}

TEST(TimeParseTest, DatesWithoutZoneAreInTheZoneGiven) {
  EXPECT_EQ(Nanos("2026-01-31 12:00", absl::FixedTimeZone(3600)), Nanos("2026-01-31T11:00:00Z"));
}

TEST(TimeParseTest, RefusesWhatItCannotMean) {
  for (const char* text : {"", "noon", "2026", "2026-13-01", "1769860800.1234567891", "-5", "ago",
                           "h ago", "1969-12-31", "2263-01-01", "99999999999999999999"}) {
    if (std::string(text) == "2026") continue;  // A number of seconds.
    EXPECT_EQ(Nanos(text), -1) << text;
  }
}

TEST(TimeParseTest, DurationsAddUp) {
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("1w2d"), absl::Hours(9 * 24));
  EXPECT_EQ(*ParseDuration("1.5s"), absl::Milliseconds(1500));
  for (const char* text : {"", "0s", "5", "m", "1x", "-1h", "1h-", "9e9h", "1..5s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(MatcherParseTest, ReadsTheFourOperators) {
  const auto matcher = [](absl::string_view text) { return *ParseMatcher(text); };
  EXPECT_EQ(matcher("task=0").op(), v1::Matcher::OP_EQUAL);
  EXPECT_EQ(matcher("task!=0").op(), v1::Matcher::OP_NOT_EQUAL);
  EXPECT_EQ(matcher("host=~web-.*").op(), v1::Matcher::OP_MATCHES);
  EXPECT_EQ(matcher("host!~web-.*").op(), v1::Matcher::OP_NOT_MATCHES);
  EXPECT_EQ(matcher("host!~web-.*").label(), "host");
  EXPECT_EQ(matcher("host!~web-.*").value(), "web-.*");
}

TEST(MatcherParseTest, ValueMayBeEmptyAndMayHoldOperators) {
  EXPECT_EQ(ParseMatcher("device=")->value(), "");
  EXPECT_EQ(ParseMatcher("a=b=c!=d")->value(), "b=c!=d");
}

TEST(MatcherParseTest, RefusesBadLabelsAndMissingOperators) {
  for (const char* text : {"", "task", "=0", "0task=1", "ta sk=1", "task!0", "task~x"}) {
    EXPECT_FALSE(ParseMatcher(text).ok()) << text;
  }
}

TEST(StepsParseTest, EitherEndMayBeOpen) {
  EXPECT_EQ(ParseSteps("-5:10")->begin(), -5);
  EXPECT_EQ(ParseSteps("-5:10")->end(), 10);
  EXPECT_FALSE(ParseSteps("7:")->has_end());
  EXPECT_FALSE(ParseSteps(":7")->has_begin());
  EXPECT_EQ(ParseSteps("7")->begin(), 7);
  EXPECT_EQ(ParseSteps("7")->end(), 7);
  EXPECT_EQ(ParseSteps("0:9223372036854775807")->end(), std::numeric_limits<int64_t>::max());
  for (const char* text : {"", ":", "5:4", "a:b", "1:2:3", "9223372036854775808:"}) {
    EXPECT_FALSE(ParseSteps(text).ok()) << text;
  }
}

absl::StatusOr<QueryOptions> Options(std::vector<std::string> args) {
  args.insert(args.begin(), {"job", "loss"});
  const auto parsed = ParseArgs(args, QueryFlags());
  if (!parsed.ok()) return parsed.status();
  return ParseQueryOptions(*parsed, kNow, absl::UTCTimeZone());
}

TEST(QueryOptionsTest, FlagsBecomeTheRequest) {
  const auto options =
      Options({"-m", "task=0", "--attempt", "2", "--since", "1h", "--steps", "10:20", "--points",
               "5", "--across", "p90", "--group-by", "host,chip"});
  ASSERT_TRUE(options.ok()) << options.status();
  const v1::RangeRequest& request = options->request;
  EXPECT_EQ(request.selector().job(), "job");
  EXPECT_THAT(request.selector().metrics(), ElementsAre("loss"));
  ASSERT_EQ(request.selector().matchers_size(), 2);
  EXPECT_EQ(request.selector().matchers(1).label(), "attempt");
  EXPECT_EQ(request.selector().matchers(1).value(), "2");
  EXPECT_EQ(request.time().begin_unix_ns(), absl::ToUnixNanos(kNow - absl::Hours(1)));
  EXPECT_EQ(request.time().end_unix_ns(), 0);
  EXPECT_EQ(request.steps().begin(), 10);
  EXPECT_EQ(request.axis(), v1::AXIS_STEP) << "steps were named";
  EXPECT_EQ(request.max_points(), 5);
  EXPECT_EQ(request.aggregation().function(), v1::AGGREGATE_FUNCTION_P90);
  EXPECT_THAT(request.aggregation().by(), ElementsAre("host", "chip"));
}

TEST(QueryOptionsTest, AcrossByTimeIsReducedBecauseItMustBe) {
  EXPECT_EQ(Options({"--across", "avg"})->request.max_points(), 60);
  EXPECT_EQ(Options({"--across", "avg", "--by", "step"})->request.max_points(), 0);
  EXPECT_EQ(Options({})->request.axis(), v1::AXIS_TIME);
}

TEST(QueryOptionsTest, RefusesContradictions) {
  const auto error = [](const std::vector<std::string>& args) {
    return std::string(Options(args).status().message());
  };
  EXPECT_THAT(error({"--since", "1h", "--from", "today"}), HasSubstr("give one"));
  EXPECT_THAT(error({"--from", "now", "--to", "2h ago"}), HasSubstr("--to"));
  EXPECT_THAT(error({"--group-by", "host"}), HasSubstr("--across"));
  EXPECT_THAT(error({"--points", "0"}), HasSubstr("1 or more"));
  EXPECT_THAT(error({"--points", "100001"}), HasSubstr("at most 100000"));
  EXPECT_THAT(error({"--limit", "few"}), HasSubstr("--limit 'few'"));
  EXPECT_THAT(error({"--across", "mean"}), HasSubstr("expected one of sum, avg"));
}

}  // namespace
}  // namespace tacho::ctl
