#include "server/forward/otlp_answer.h"

#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"

namespace tacho::server::forward {
namespace {

using Partial = opentelemetry::proto::collector::metrics::v1::ExportMetricsPartialSuccess;
using grpc::StatusCode;

grpc::Status WithRetryInfo(StatusCode code, int64_t seconds) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  return {code, "later", details.SerializeAsString()};
}

NextStep StepOf(const grpc::Status& status) { return JudgeOtlp(status, Partial(), 5).step; }

TEST(OtlpAnswerTest, SuccessIsWrittenButForWhatIsRejected) {
  EXPECT_EQ(JudgeOtlp(grpc::Status::OK, Partial(), 5).step, NextStep::kGoOn);
  EXPECT_EQ(JudgeOtlp(grpc::Status::OK, Partial(), 5).written, 5u);
  Partial partial;
  partial.set_error_message("a warning alone");
  EXPECT_EQ(JudgeOtlp(grpc::Status::OK, partial, 5).step, NextStep::kGoOn);
  for (const auto& [rejected, written] : {std::pair(2, 3), {5, 0}, {99, 0}, {-1, 5}}) {
    partial.set_rejected_data_points(rejected);
    const Verdict verdict = JudgeOtlp(grpc::Status::OK, partial, 5);
    EXPECT_EQ(verdict.step, rejected > 0 ? NextStep::kLeaveOut : NextStep::kGoOn) << rejected;
    EXPECT_EQ(verdict.written, static_cast<size_t>(written)) << rejected;
  }
}

TEST(OtlpAnswerTest, WhatIsAtFaultDecidesWhetherItIsSentAgain) {
  for (const StatusCode code :
       {StatusCode::CANCELLED, StatusCode::DEADLINE_EXCEEDED, StatusCode::ABORTED,
        StatusCode::OUT_OF_RANGE, StatusCode::UNAVAILABLE, StatusCode::DATA_LOSS,
        StatusCode::UNAUTHENTICATED, StatusCode::PERMISSION_DENIED, StatusCode::NOT_FOUND,
        StatusCode::UNIMPLEMENTED}) {
    EXPECT_EQ(StepOf({code, ""}), NextStep::kTryLater) << NameOfCode(code);
  }
  for (const StatusCode code :
       {StatusCode::UNKNOWN, StatusCode::INVALID_ARGUMENT, StatusCode::ALREADY_EXISTS,
        StatusCode::FAILED_PRECONDITION, StatusCode::INTERNAL}) {
    EXPECT_EQ(StepOf({code, ""}), NextStep::kLeaveOut) << NameOfCode(code);
  }
}

TEST(OtlpAnswerTest, AnExhaustedReceiverIsAskedAgainOnlyIfItSaysWhen) {
  EXPECT_EQ(StepOf({StatusCode::RESOURCE_EXHAUSTED, "too large"}), NextStep::kSplit);
  const Verdict verdict = JudgeOtlp(WithRetryInfo(StatusCode::RESOURCE_EXHAUSTED, 3), {}, 5);
  EXPECT_EQ(verdict.step, NextStep::kTryLater);
  EXPECT_EQ(verdict.pause, absl::Seconds(3));
}

TEST(OtlpAnswerTest, ThePauseIsWhatTheReceiverAsksForWithinBounds) {
  const auto pause = [](const grpc::Status& status) { return JudgeOtlp(status, {}, 5).pause; };
  EXPECT_EQ(pause({StatusCode::UNAVAILABLE, ""}), std::nullopt);
  EXPECT_EQ(pause({StatusCode::UNAVAILABLE, "", "no details"}), std::nullopt);
  EXPECT_EQ(pause(WithRetryInfo(StatusCode::UNAVAILABLE, 7)), absl::Seconds(7));
  EXPECT_EQ(pause(WithRetryInfo(StatusCode::UNAVAILABLE, -7)), absl::ZeroDuration());
  EXPECT_EQ(pause(WithRetryInfo(StatusCode::UNAVAILABLE, 1'000'000)), kLongestRetryAfter);
}

TEST(OtlpAnswerTest, CodesHaveTheirNames) {
  EXPECT_EQ(NameOfCode(StatusCode::OK), "OK");
  EXPECT_EQ(NameOfCode(StatusCode::UNAVAILABLE), "UNAVAILABLE");
}

}  // namespace
}  // namespace tacho::server::forward
