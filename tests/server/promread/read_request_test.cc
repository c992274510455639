// What a request becomes, and which requests are refused with which words.
#include "server/promread/read_request.h"

#include <snappy.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_read.pb.h"

namespace tacho::server::promread {
namespace {

using ::prometheus_remote::LabelMatcher;
using testing::HasSubstr;

std::string Packed(const std::string& bytes) {
  std::string packed;
  snappy::Compress(bytes.data(), bytes.size(), &packed);
  return packed;
}

absl::StatusOr<ReadRequest> Unpacked(const ::prometheus_remote::ReadRequest& request) {
  return UnpackReadRequest(Packed(request.SerializeAsString()));
}

::prometheus_remote::ReadRequest OneQuery(LabelMatcher::Type type, const std::string& value) {
  ::prometheus_remote::ReadRequest request;
  auto* const query = request.add_queries();
  query->set_start_timestamp_ms(-5);
  query->set_end_timestamp_ms(1'700'000'000'000);
  auto* const matcher = query->add_matchers();
  matcher->set_type(type);
  matcher->set_name("job");
  matcher->set_value(value);
  return request;
}

TEST(ReadRequestTest, AQueryHasItsTimesAndMatchers) {
  const auto request = Unpacked(OneQuery(LabelMatcher::NRE, "a|b"));
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->queries.size(), 1u);
  EXPECT_EQ(request->queries[0].begin_ms, -5);
  EXPECT_EQ(request->queries[0].end_ms, 1'700'000'000'000);
  ASSERT_EQ(request->queries[0].matchers.size(), 1u);
  const storage::Matcher& matcher = request->queries[0].matchers[0];
  EXPECT_EQ(matcher.label(), "job");
  EXPECT_FALSE(matcher.MatchesValue("a"));
  EXPECT_TRUE(matcher.MatchesValue("ab")) << "anchored at both ends";
}

TEST(ReadRequestTest, EachTypeOfMatcherMeansWhatPrometheusMeans) {
  const auto takes = [](LabelMatcher::Type type, const char* value) {
    return Unpacked(OneQuery(type, "x.z"))->queries[0].matchers[0].MatchesValue(value);
  };
  EXPECT_TRUE(takes(LabelMatcher::EQ, "x.z"));
  EXPECT_FALSE(takes(LabelMatcher::EQ, "xyz"));
  EXPECT_TRUE(takes(LabelMatcher::NEQ, "xyz"));
  EXPECT_FALSE(takes(LabelMatcher::NEQ, "x.z"));
  EXPECT_TRUE(takes(LabelMatcher::RE, "xyz"));
  EXPECT_FALSE(takes(LabelMatcher::RE, "xyzz"));
}

TEST(ReadRequestTest, TheFirstFormThatIsKnownIsTaken) {
  auto request = OneQuery(LabelMatcher::EQ, "x");
  EXPECT_EQ(Unpacked(request)->form, AnswerForm::kSamples);
  request.add_accepted_response_types(::prometheus_remote::ReadRequest::STREAMED_XOR_CHUNKS);
  request.add_accepted_response_types(::prometheus_remote::ReadRequest::SAMPLES);
  EXPECT_EQ(Unpacked(request)->form, AnswerForm::kChunks);
  request.mutable_accepted_response_types()->SwapElements(0, 1);
  EXPECT_EQ(Unpacked(request)->form, AnswerForm::kSamples);
  request.clear_accepted_response_types();
  request.mutable_accepted_response_types()->Add(7);
  EXPECT_THAT(Unpacked(request).status().message(), HasSubstr("accepted_response_types"));
}

TEST(ReadRequestTest, WhatCannotBeReadIsRefusedWithItsPlace) {
  EXPECT_THAT(UnpackReadRequest("\x05no").status().message(), HasSubstr("Snappy"));
  EXPECT_THAT(UnpackReadRequest(Packed("\x0a\xff")).status().message(),
              HasSubstr("no prometheus.ReadRequest"));
  EXPECT_THAT(Unpacked(OneQuery(LabelMatcher::RE, "(")).status().message(),
              HasSubstr("queries[0].matchers[0]"));
  EXPECT_THAT(Unpacked(OneQuery(LabelMatcher::EQ, "\xff")).status().message(),
              HasSubstr("no UTF-8"));
  auto request = OneQuery(LabelMatcher::EQ, "x");
  request.mutable_queries(0)->mutable_matchers(0)->set_type(static_cast<LabelMatcher::Type>(9));
  EXPECT_THAT(Unpacked(request).status().message(), HasSubstr("there is no type 9"));
  for (const auto& status : {UnpackReadRequest("").status(), Unpacked(request).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ReadRequestTest, WhatIsTooLargeIsRefusedBeforeMemoryIsTaken) {
  // Announces 4 GiB - 1.
  EXPECT_EQ(UnpackReadRequest("\xff\xff\xff\xff\x0f").status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(UnpackReadRequest(Packed(std::string(kMaxRequestBytes + 1, '\0'))).status().code(),
            absl::StatusCode::kResourceExhausted);
  ::prometheus_remote::ReadRequest queries;
  for (int i = 0; i <= kMaxQueries; ++i) queries.add_queries();
  EXPECT_THAT(Unpacked(queries).status().message(), HasSubstr("101 queries"));
  ::prometheus_remote::ReadRequest matchers;
  auto* const query = matchers.add_queries();
  for (int i = 0; i <= kMaxMatchers; ++i) query->add_matchers()->set_name("x");
  EXPECT_THAT(Unpacked(matchers).status().message(), HasSubstr("101 matchers"));
}

}  // namespace
}  // namespace tacho::server::promread
