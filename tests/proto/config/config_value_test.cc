#include "proto/config/config_value.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/utf8.h"

namespace tacho::config {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

constexpr int64_t kSecond = 1'000'000'000;

TEST(ParseDurationTest, ReadsEveryUnitAndTheirSums) {
  EXPECT_EQ(*ParseDuration("0"), 0);
  EXPECT_EQ(*ParseDuration("0s"), 0);
  EXPECT_EQ(*ParseDuration("1ns"), 1);
  EXPECT_EQ(*ParseDuration("2us"), 2'000);
  EXPECT_EQ(*ParseDuration("500ms"), 500'000'000);
  EXPECT_EQ(*ParseDuration("90s"), 90 * kSecond);
  EXPECT_EQ(*ParseDuration("10m"), 600 * kSecond);
  EXPECT_EQ(*ParseDuration("1h30m"), 5400 * kSecond);
  EXPECT_EQ(*ParseDuration("30d"), 30 * 86400 * kSecond);
  EXPECT_EQ(*ParseDuration("1.5h"), 5400 * kSecond);
  EXPECT_EQ(*ParseDuration("-1m30s"), -90 * kSecond);
}

TEST(ParseDurationTest, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "90", "s", "-", "1x", "1 s", "30m1h", "1s1s", "1.s", ".5s", "1e3s",
                           "+5s", "0.1ns", "1s ", "1h30", "123456789012345678901s", "1S"}) {
    EXPECT_THAT(TextOf(ParseDuration(text).status()), HasSubstr("is not a duration"))
        << "'" << text << "'";
  }
}

TEST(ParseDurationTest, EndsAt292Years) {
  EXPECT_EQ(*ParseDuration("9223372036854775807ns"), std::numeric_limits<int64_t>::max());
  EXPECT_THAT(TextOf(ParseDuration("9223372036854775808ns").status()), HasSubstr("292 years"));
  EXPECT_THAT(TextOf(ParseDuration("99999999999999999999d").status()), HasSubstr("292 years"));
}

TEST(FormatDurationTest, IsReadBackAsTheSame) {
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{-1}, 90 * kSecond, 5400 * kSecond,
                           int64_t{86'400'000'000'001}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(*ParseDuration(FormatDuration(ns)), ns) << FormatDuration(ns);
  }
  EXPECT_EQ(FormatDuration(5400 * kSecond), "1h30m");
  EXPECT_EQ(FormatDuration(90 * 86400 * kSecond), "90d");
  EXPECT_EQ(FormatDuration(0), "0s");
}

TEST(ParseBytesTest, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("4096"), 4096u);
  EXPECT_EQ(*ParseBytes("64MiB"), 64u << 20);
  EXPECT_EQ(*ParseBytes("2GB"), 2'000'000'000u);
  EXPECT_EQ(*ParseBytes("1.5KiB"), 1536u);
  EXPECT_EQ(*ParseBytes("18446744073709551615"), std::numeric_limits<uint64_t>::max());
}

TEST(ParseBytesTest, RefusesWhatIsNoNumberOfBytes) {
  for (const char* text : {"", "-1", "64 MiB", "64M", "MiB", "1.5", "0x10", "64mib", "1.0001KiB"}) {
    EXPECT_THAT(TextOf(ParseBytes(text).status()), HasSubstr("is not a number of bytes"))
        << "'" << text << "'";
  }
  EXPECT_THAT(TextOf(ParseBytes("18446744073709551616").status()), HasSubstr("more than 2^64"));
  EXPECT_THAT(TextOf(ParseBytes("99999999999TiB").status()), HasSubstr("more than 2^64"));
}

TEST(FormatBytesTest, UsesTheLargestUnitThatLosesNothing) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(4096), "4KiB");
  EXPECT_EQ(FormatBytes(64 << 20), "64MiB");
  EXPECT_EQ(FormatBytes(2'000'000'000), "2GB");
  EXPECT_EQ(FormatBytes(4097), "4097");
  EXPECT_EQ(*ParseBytes(FormatBytes(std::numeric_limits<uint64_t>::max())),
            std::numeric_limits<uint64_t>::max());
}

TEST(CheckAddressTest, TakesNamesAndBothFamilies) {
  for (const char* text :
       {"127.0.0.1:7411", "localhost:0", "a-b.example.com:65535", "[::1]:7411", "[fe80::1]:1"}) {
    EXPECT_TRUE(CheckAddress(text).ok()) << CheckAddress(text);
  }
}

TEST(CheckAddressTest, SaysWhatIsWrong) {
  EXPECT_THAT(TextOf(CheckAddress("localhost")), HasSubstr("has no port"));
  EXPECT_THAT(TextOf(CheckAddress("localhost:")), HasSubstr("port ''"));
  EXPECT_THAT(TextOf(CheckAddress("localhost:65536")), HasSubstr("0 to 65535"));
  EXPECT_THAT(TextOf(CheckAddress("localhost:-1")), HasSubstr("port '-1'"));
  EXPECT_THAT(TextOf(CheckAddress("localhost: 80")), HasSubstr("port ' 80'"));
  EXPECT_THAT(TextOf(CheckAddress(":7411")), HasSubstr("not a host name"));
  EXPECT_THAT(TextOf(CheckAddress("a b:7411")), HasSubstr("not a host name"));
  EXPECT_THAT(TextOf(CheckAddress("::1:7411")), HasSubstr("in brackets"));
  EXPECT_THAT(TextOf(CheckAddress("[::g]:7411")), HasSubstr("not an IPv6 address"));
}

TEST(IsUtf8Test, RefusesOverlongSurrogateAndTornForms) {
  EXPECT_TRUE(IsUtf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  for (const char* text : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace tacho::config
