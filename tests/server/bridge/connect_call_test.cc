#include "server/bridge/connect_call.h"

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::bridge {
namespace {

using ::testing::HasSubstr;

http::HttpRequest Post(absl::string_view path, absl::string_view type, absl::string_view body) {
  http::HttpRequest request;
  request.method = "POST";
  request.path = std::string(path);
  request.headers = {{"content-type", std::string(type)}};
  request.body = std::string(body);
  return request;
}

http::HttpRequest Get(absl::string_view path, http::HttpRequest::Pairs query) {
  http::HttpRequest request;
  request.method = "GET";
  request.path = std::string(path);
  request.query = std::move(query);
  return request;
}

std::string JobOf(const ConnectCall& call) {
  v1::GetJobRequest request;
  EXPECT_TRUE(request.ParseFromString(call.request));
  return request.job();
}

TEST(ConnectCallTest, FindsMethodsOfTheServicesThatRead) {
  ASSERT_NE(FindMethod("/tacho.v1.Query/GetJob"), nullptr);
  ASSERT_NE(FindMethod("/tacho.v1.View/Fleet"), nullptr);
  for (const absl::string_view other :
       {"/tacho.v1.Ingest/Stream", "/tacho.v1.Admin/Drain", "/tacho.v1.Marks/ChangeMarks",
        "/tacho.v1.Query", "/tacho.v1.Query/", "/tacho.v1.Query/getjob", "/tacho.v1.Query/GetJob/",
        "/tacho.v1.QueryX/GetJob", "tacho.v1.Query/GetJob", "/", ""}) {
    EXPECT_EQ(FindMethod(other), nullptr) << other;
  }
}

TEST(ConnectCallTest, ReadsUnaryRequestsInBothCodecs) {
  v1::GetJobRequest asked;
  asked.set_job("bert");
  const auto proto = ReadConnectCall(
      Post("/tacho.v1.Query/GetJob", "application/proto", asked.SerializeAsString()));
  ASSERT_TRUE(proto.ok()) << proto.status();
  EXPECT_EQ(proto->name(), "/tacho.v1.Query/GetJob");
  EXPECT_EQ(proto->codec, Codec::kProto);
  EXPECT_EQ(proto->framing, Framing::kUnary);
  EXPECT_EQ(JobOf(*proto), "bert");

  const auto json = ReadConnectCall(
      Post("/tacho.v1.Query/GetJob", "Application/JSON; charset=utf-8", R"({"job":"bert"})"));
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->codec, Codec::kJson);
  EXPECT_EQ(JobOf(*json), "bert");

  EXPECT_TRUE(ReadConnectCall(Post("/tacho.v1.Query/ListJobs", "application/json", "")).ok());
}

TEST(ConnectCallTest, ReadsStreamsInEnvelopesAndAsLines) {
  const std::string json = R"({"selector":{"job":"bert"}})";
  const std::string envelope = std::string("\0\0\0\0", 4) + static_cast<char>(json.size()) + json;
  const auto enveloped =
      ReadConnectCall(Post("/tacho.v1.Query/Range", "application/connect+json", envelope));
  ASSERT_TRUE(enveloped.ok()) << enveloped.status();
  EXPECT_EQ(enveloped->framing, Framing::kEnvelopes);
  const auto lines = ReadConnectCall(Post("/tacho.v1.Query/Range", "application/json", json));
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(lines->framing, Framing::kLines);
  EXPECT_EQ(lines->request, enveloped->request);
}

TEST(ConnectCallTest, ReadsGet) {
  const auto plain = ReadConnectCall(
      Get("/tacho.v1.Query/GetJob",
          {{"connect", "v1"}, {"encoding", "json"}, {"message", R"({"job":"bert"})"}}));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(JobOf(*plain), "bert");
  const auto packed =
      ReadConnectCall(Get("/tacho.v1.Query/GetJob",
                          {{"encoding", "json"}, {"base64", "1"}, {"message", "eyJqb2IiOiJhIn0"}}));
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(JobOf(*packed), "a");
}

TEST(ConnectCallTest, TakesTimeouts) {
  auto request = Post("/tacho.v1.Query/ListJobs", "application/json", "{}");
  request.headers.emplace_back("connect-timeout-ms", "1500");
  const auto call = ReadConnectCall(request);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->timeout, absl::Milliseconds(1500));
}

struct Wrong {
  const char* what;
  http::HttpRequest request;
  absl::StatusCode code;
  const char* text;
};

TEST(ConnectCallTest, RefusesWhatItDoesNotUnderstand) {
  const std::string range = "/tacho.v1.Query/Range";
  const std::string stream = "application/connect+proto";
  auto version = Post("/tacho.v1.Query/ListJobs", "application/json", "{}");
  version.headers.emplace_back("connect-protocol-version", "2");
  auto packed = Post("/tacho.v1.Query/ListJobs", "application/json", "{}");
  packed.headers.emplace_back("content-encoding", "gzip");
  auto late = Post("/tacho.v1.Query/ListJobs", "application/json", "{}");
  late.headers.emplace_back("connect-timeout-ms", "12345678901");
  auto negative = Post("/tacho.v1.Query/ListJobs", "application/json", "{}");
  negative.headers.emplace_back("connect-timeout-ms", "-1");
  const Wrong wrongs[] = {
      {"another service", Post("/tacho.v1.Ingest/Stream", "application/proto", ""),
       absl::StatusCode::kNotFound, "Ingest"},
      {"version", version, absl::StatusCode::kUnimplemented, "version 1"},
      {"gzip", packed, absl::StatusCode::kUnimplemented, "identity"},
      {"timeout", late, absl::StatusCode::kInvalidArgument, "Connect-Timeout-Ms"},
      {"negative timeout", negative, absl::StatusCode::kInvalidArgument, "Connect-Timeout-Ms"},
      {"no envelope", Post(range, stream, ""), absl::StatusCode::kInvalidArgument, "envelope"},
      {"short envelope", Post(range, stream, std::string("\0\0\0\0\5ab", 7)),
       absl::StatusCode::kInvalidArgument, "announces 5 bytes, and 2 follow"},
      {"long envelope", Post(range, stream, std::string("\0\0\0\0\1ab", 7)),
       absl::StatusCode::kInvalidArgument, "announces 1 bytes, and 2 follow"},
      {"huge envelope", Post(range, stream, std::string("\0\xff\xff\xff\xff", 5)),
       absl::StatusCode::kInvalidArgument, "announces 4294967295 bytes"},
      {"packed envelope", Post(range, stream, std::string("\1\0\0\0\0", 5)),
       absl::StatusCode::kInvalidArgument, "flags"},
      {"a typing mistake", Post("/tacho.v1.Query/GetJob", "application/json", R"({"jobb":"a"})"),
       absl::StatusCode::kInvalidArgument, "jobb"},
      {"no JSON", Post("/tacho.v1.Query/GetJob", "application/json", "{"),
       absl::StatusCode::kInvalidArgument, "tacho.v1.GetJobRequest"},
      {"no UTF-8", Post("/tacho.v1.Query/GetJob", "application/json", "{\"job\": \"\xff\xfe\"}"),
       absl::StatusCode::kInvalidArgument, "no UTF-8"},
      {"a deep message",
       Post("/tacho.v1.Query/ListJobs", "application/json",
            "{\"matchers\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
       absl::StatusCode::kInvalidArgument, "more than 32 objects and arrays"},
      {"a deep message behind a quote",
       Post("/tacho.v1.Query/ListJobs", "application/json",
            "{'group': '\"', 'matchers': " + std::string(33, '[') + std::string(33, ']') + "}"),
       absl::StatusCode::kInvalidArgument, "more than 32 objects and arrays"},
      {"a path that is no UTF-8", Post("/tacho.v1.Query/\xff", "application/json", "{}"),
       absl::StatusCode::kNotFound, "/tacho.v1.Query/\xef\xbf\xbd"},
      {"no encoding", Get("/tacho.v1.Query/GetJob", {}), absl::StatusCode::kInvalidArgument,
       "encoding"},
      {"no base64",
       Get("/tacho.v1.Query/GetJob", {{"encoding", "json"}, {"base64", "1"}, {"message", "+++"}}),
       absl::StatusCode::kInvalidArgument, "base64"},
      {"a stream of protos", Get(range, {{"encoding", "proto"}}),
       absl::StatusCode::kInvalidArgument, "json"},
  };
  for (const Wrong& wrong : wrongs) {
    const auto call = ReadConnectCall(wrong.request);
    ASSERT_FALSE(call.ok()) << wrong.what;
    EXPECT_EQ(call.status().code(), wrong.code) << wrong.what << ": " << call.status();
    EXPECT_THAT(call.status().message(), HasSubstr(wrong.text)) << wrong.what;
  }
}

TEST(ConnectCallTest, BracketsInATextAreNoDepth) {
  const std::string brackets(100, '[');
  const auto call = ReadConnectCall(Post("/tacho.v1.Query/ListJobs", "application/json",
                                         R"({"group": "\")" + brackets + R"("})"));
  ASSERT_TRUE(call.ok()) << call.status();
  v1::ListJobsRequest request;
  ASSERT_TRUE(request.ParseFromString(call->request));
  EXPECT_EQ(request.group(), "\"" + brackets);
}

TEST(ConnectCallTest, KnowsContentTypes) {
  const auto& unary = *FindMethod("/tacho.v1.Query/GetJob");
  const auto& stream = *FindMethod("/tacho.v1.Query/Range");
  EXPECT_TRUE(TakesContentType(unary, "application/json"));
  EXPECT_TRUE(TakesContentType(unary, "application/proto"));
  EXPECT_FALSE(TakesContentType(unary, "application/connect+json"));
  EXPECT_FALSE(TakesContentType(unary, "text/plain"));
  EXPECT_FALSE(TakesContentType(unary, "application/x-www-form-urlencoded"));
  EXPECT_FALSE(TakesContentType(unary, ""));
  EXPECT_TRUE(TakesContentType(stream, "application/json"));
  EXPECT_TRUE(TakesContentType(stream, "application/connect+proto"));
  EXPECT_FALSE(TakesContentType(stream, "application/proto"));
}

}  // namespace
}  // namespace tacho::server::bridge
