// Addresses, and what services answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/bucket/bucket_address.h"
#include "storage/bucket/bucket_answers.h"
#include "storage/bucket/http_pool.h"
#include "storage/bucket/profile_file.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

BucketAddress AddressOf(BucketOptions options) {
  if (!options.environment) options.environment = [](const char*) { return nullptr; };
  const auto address = ParseBucketAddress(options);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.value_or(BucketAddress());
}

TEST(BucketAddressTest, BucketIsInTheHostUnlessSaidOtherwise) {
  EXPECT_EQ(AddressOf({.url = "s3://b-1/fleet"}).ObjectUrl("k/1"),
            "https://b-1.s3.us-east-1.amazonaws.com/fleet/k/1");
  EXPECT_EQ(AddressOf({.url = "s3://b-1", .region = "cn-north-1"}).ObjectUrl("k"),
            "https://b-1.s3.cn-north-1.amazonaws.com.cn/k");
  EXPECT_EQ(AddressOf({.url = "s3://b.1"}).ObjectUrl("k"),
            "https://s3.us-east-1.amazonaws.com/b.1/k");
  EXPECT_EQ(AddressOf({.url = "s3://b-1", .endpoint = "http://h:80/"}).ObjectUrl("k"),
            "http://b-1.h:80/k");
  EXPECT_EQ(AddressOf({.url = "s3://b-1", .endpoint = "http://[::1]:80", .path_style = true})
                .ObjectUrl("k"),
            "http://[::1]:80/b-1/k");
  EXPECT_EQ(AddressOf({.url = "gs://b-1/fleet/"}).ObjectUrl("k"),
            "https://storage.googleapis.com/b-1/fleet/k");
}

TEST(BucketAddressTest, RegionComesFromTheEnvironmentIfNotGiven) {
  const auto environment = [](const char* name) {
    return absl::string_view(name) == "AWS_DEFAULT_REGION" ? "eu-north-1" : nullptr;
  };
  EXPECT_EQ(AddressOf({.url = "s3://b-1", .environment = environment}).region, "eu-north-1");
  EXPECT_EQ(AddressOf({.url = "s3://b-1", .region = "ap-1", .environment = environment}).region,
            "ap-1");
}

// The signer takes the query as it stands.
TEST(BucketAddressTest, QueryIsSortedAndEscaped) {
  const BucketAddress address = AddressOf({.url = "s3://b-1/f"});
  EXPECT_EQ(address.ListUrl("days/", "a+/="),
            "https://b-1.s3.us-east-1.amazonaws.com/"
            "?continuation-token=a%2B%2F%3D&list-type=2&max-keys=1000&prefix=f%2Fdays%2F");
}

TEST(BucketAnswersTest, ReadsErrors) {
  const ErrorAnswer error = ParseErrorAnswer(
      "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>gone &amp; "
      "lost</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "gone & lost");
  EXPECT_EQ(ParseErrorAnswer("<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error>"
                             "</ErrorResponse>")
                .code,
            "InvalidIdentityToken");
  EXPECT_EQ(ParseErrorAnswer("<html>Bad gateway").code, "");
  EXPECT_EQ(ParseErrorAnswer("").code, "");
}

TEST(BucketAnswersTest, BoundsTheTextOfErrors) {
  const std::string body =
      absl::StrCat("<Error><Message>", std::string(100'000, 'x'), "</Message></Error>");
  EXPECT_EQ(ParseErrorAnswer(body).message.size(), kMaxErrorText);
}

TEST(BucketAnswersTest, RefusesWhatIsNoListing) {
  EXPECT_FALSE(ParseListing("", "").ok());
  EXPECT_FALSE(ParseListing("<html/>", "").ok());
  EXPECT_FALSE(ParseListing("<ListBucketResult><Contents><Key>a</Key></Contents>", "").ok());
  EXPECT_FALSE(
      ParseListing("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>", "")
          .ok())
      << "no size";
  const auto endless =
      ParseListing("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "");
  EXPECT_THAT(std::string(endless.status().message()), HasSubstr("does not say from where"));
}

TEST(BucketAnswersTest, TakesQuotesOffTags) {
  EXPECT_EQ(BareTag("\"abc\""), "abc");
  EXPECT_EQ(BareTag("W/\"abc\""), "abc");
  EXPECT_EQ(BareTag("abc"), "abc");
  EXPECT_EQ(BareTag("\""), "\"");
  EXPECT_EQ(BareTag(""), "");
}

TEST(BucketAnswersTest, ReadsRanges) {
  EXPECT_EQ(ParseRangeStart("bytes 5-9/100"), 5u);
  EXPECT_EQ(ParseRangeStart("bytes 18446744073709551615-1/1"), 18446744073709551615u);
  EXPECT_EQ(ParseRangeStart("bytes */100"), std::nullopt);
  EXPECT_EQ(ParseRangeStart("bytes -5"), std::nullopt);
  EXPECT_EQ(ParseRangeStart(""), std::nullopt);
}

TEST(HttpHeadersTest, AreReadInBounds) {
  std::map<std::string, std::string> headers;
  AddHeaderLine("ETag:  \"a: b\" \r\n", &headers);
  AddHeaderLine("no colon", &headers);
  AddHeaderLine(": no name", &headers);
  EXPECT_THAT(headers, ElementsAre(Pair("etag", "\"a: b\"")));
  for (int i = 0; i < 1000; ++i) AddHeaderLine(absl::StrCat("h", i, ": x"), &headers);
  EXPECT_EQ(headers.size(), kMaxHeaders);
  AddHeaderLine("etag: new", &headers);
  EXPECT_EQ(headers["etag"], "new");
}

TEST(ProfileFileTest, ReadsSectionsAsAwsDoes) {
  const auto profiles = ParseProfiles(
      "ignored = 1\n[default]\naws_access_key_id = A\n  nested = no\n# comment\n; comment\n"
      "AWS_Secret_Access_Key=b=c\r\n[ profile  other ]\nregion = x\nno setting\n[broken\nk = v\n");
  EXPECT_THAT(profiles.at("default"),
              ElementsAre(Pair("aws_access_key_id", "A"), Pair("aws_secret_access_key", "b=c")));
  EXPECT_THAT(profiles.at("other"), ElementsAre(Pair("region", "x")));
}

}  // namespace
}  // namespace tacho::storage
