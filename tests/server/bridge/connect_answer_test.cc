#include "server/bridge/connect_answer.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::bridge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

ConnectCall CallOf(absl::string_view path, Codec codec, Framing framing) {
  ConnectCall call;
  call.method = FindMethod(path);
  call.codec = codec;
  call.framing = framing;
  return call;
}

TEST(ConnectAnswerTest, HasTheStatusesOfTheProtocol) {
  const std::pair<grpc::StatusCode, int> table[] = {
      {grpc::StatusCode::CANCELLED, 499},
      {grpc::StatusCode::UNKNOWN, 500},
      {grpc::StatusCode::INVALID_ARGUMENT, 400},
      {grpc::StatusCode::DEADLINE_EXCEEDED, 504},
      {grpc::StatusCode::NOT_FOUND, 404},
      {grpc::StatusCode::ALREADY_EXISTS, 409},
      {grpc::StatusCode::PERMISSION_DENIED, 403},
      {grpc::StatusCode::RESOURCE_EXHAUSTED, 429},
      {grpc::StatusCode::FAILED_PRECONDITION, 400},
      {grpc::StatusCode::ABORTED, 409},
      {grpc::StatusCode::OUT_OF_RANGE, 400},
      {grpc::StatusCode::UNIMPLEMENTED, 501},
      {grpc::StatusCode::INTERNAL, 500},
      {grpc::StatusCode::UNAVAILABLE, 503},
      {grpc::StatusCode::DATA_LOSS, 500},
      {grpc::StatusCode::UNAUTHENTICATED, 401},
  };
  for (const auto& [code, status] : table) EXPECT_EQ(HttpStatusOf(code), status) << code;
}

TEST(ConnectAnswerTest, ErrorsSayEverythingThatGrpcSays) {
  const auto answer = ErrorAnswer(
      errors::ToGrpcStatus(errors::ErrorOf(errors::Failure::kOverloaded, "16 queries \"run\"")));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_THAT(
      answer.body,
      AllOf(StartsWith(R"({"code":"unavailable","message":"16 queries \"run\"","details":[)"),
            HasSubstr(R"("type":"google.rpc.ErrorInfo")"), HasSubstr("OVERLOADED"),
            HasSubstr(R"("type":"google.rpc.RetryInfo")"), HasSubstr("retryDelay"),
            Not(HasSubstr("="))));
  EXPECT_THAT(answer.headers, Contains(Key("Retry-After")));

  const auto plain = ErrorAnswer({grpc::StatusCode::NOT_FOUND, "job: no such job"});
  EXPECT_EQ(plain.status, 404);
  EXPECT_EQ(plain.body, R"({"code":"not_found","message":"job: no such job"})");
  EXPECT_THAT(plain.headers, IsEmpty());
}

TEST(ConnectAnswerTest, ValuesThatAreNoNumbersSurviveJson) {
  v1::RangeResponse message;
  message.mutable_points()->add_values(std::numeric_limits<double>::quiet_NaN());
  message.mutable_points()->add_values(-std::numeric_limits<double>::infinity());
  message.mutable_points()->add_times_unix_ns(1'790'000'000'123'456'789);
  const auto lines = CallOf("/tacho.v1.Query/Range", Codec::kJson, Framing::kLines);
  EXPECT_EQ(*StreamMessage(lines, message.SerializeAsString()),
            "{\"points\":{\"timesUnixNs\":[\"1790000000123456789\"],\"values\":[\"NaN\",\"-"
            "Infinity\"]}}\n");
}

TEST(ConnectAnswerTest, WhatIsNoMessageIsAnErrorAndNoEmptyAnswer) {
  const auto unary = CallOf("/tacho.v1.Query/GetJob", Codec::kJson, Framing::kUnary);
  EXPECT_EQ(UnaryAnswer(unary, "\xff").status, 500);
  const auto lines = CallOf("/tacho.v1.Query/Range", Codec::kJson, Framing::kLines);
  EXPECT_EQ(StreamMessage(lines, "\xff").status().code(), absl::StatusCode::kInternal);
}

TEST(ConnectAnswerTest, StreamsEndWithTheStatus) {
  const auto proto = CallOf("/tacho.v1.Query/Range", Codec::kProto, Framing::kEnvelopes);
  EXPECT_EQ(*StreamMessage(proto, "abc"), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(StreamEnd(proto, grpc::Status::OK), std::string("\2\0\0\0\2{}", 7));
  EXPECT_THAT(StreamEnd(proto, {grpc::StatusCode::DATA_LOSS, "block 3"}),
              HasSubstr(R"({"error":{"code":"data_loss","message":"block 3"}})"));
  EXPECT_EQ(StreamHead(proto).content_type, "application/connect+proto");
  EXPECT_EQ(StreamHead(proto).status, 200);
  const auto lines = CallOf("/tacho.v1.Query/Range", Codec::kJson, Framing::kLines);
  EXPECT_EQ(StreamEnd(lines, grpc::Status::OK), "");
  EXPECT_EQ(StreamEnd(lines, {grpc::StatusCode::DATA_LOSS, "block 3"}),
            "{\"error\":{\"code\":\"data_loss\",\"message\":\"block 3\"}}\n");
}

}  // namespace
}  // namespace tacho::server::bridge
