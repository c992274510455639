#include "server/forward/write_answer.h"

#include "gtest/gtest.h"

namespace tacho::server::forward {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(784'111'777);  // Sun, 06 Nov 1994 08:49:37 GMT

storage::HttpReply Reply(int status, std::map<std::string, std::string> headers = {}) {
  storage::HttpReply reply;
  reply.status = status;
  reply.headers = std::move(headers);
  return reply;
}
const std::map<std::string, std::string> kThree = {
    {"x-prometheus-remote-write-samples-written", "3"}};

NextStep StepOf(const Asked& asked, const storage::HttpReply& reply) {
  return Judge(asked, reply, kNow).step;
}

TEST(WriteAnswerTest, SuccessOfTheFirstVersionNeedsNoHeader) {
  const Verdict verdict = Judge({WriteVersion::k1, 5, true}, Reply(200), kNow);
  EXPECT_EQ(verdict.step, NextStep::kGoOn);
  EXPECT_EQ(verdict.written, 5u);
}

TEST(WriteAnswerTest, AReceiverThatDoesNotKnowTheSecondVersionGetsTheFirst) {
  const Asked open = {WriteVersion::k2, 5, true};
  for (const int status : {415, 400, 200, 204}) {
    EXPECT_EQ(StepOf(open, Reply(status)), NextStep::kUseFirst) << status;
  }
  EXPECT_EQ(StepOf(open, Reply(204, kThree)), NextStep::kGoOn);
  EXPECT_EQ(StepOf(open, Reply(400, kThree)), NextStep::kLeaveOut);
  // Once it is known, or set, a refusal is one.
  const Asked known = {WriteVersion::k2, 5, false};
  EXPECT_EQ(StepOf(known, Reply(400)), NextStep::kLeaveOut);
  EXPECT_EQ(StepOf(known, Reply(415)), NextStep::kLeaveOut);
  EXPECT_EQ(StepOf({WriteVersion::k1, 5, true}, Reply(415)), NextStep::kLeaveOut);
}

TEST(WriteAnswerTest, WhatIsAtFaultDecidesWhetherItIsSentAgain) {
  const Asked asked = {WriteVersion::k2, 5, false};
  for (const int status : {429, 500, 502, 503, 504, 302, 0, 401, 403, 404, 407, 408}) {
    EXPECT_EQ(StepOf(asked, Reply(status)), NextStep::kTryLater) << status;
  }
  for (const int status : {400, 409, 422}) {
    EXPECT_EQ(StepOf(asked, Reply(status)), NextStep::kLeaveOut) << status;
  }
  EXPECT_EQ(StepOf(asked, Reply(413)), NextStep::kSplit);
}

TEST(WriteAnswerTest, APartThatWasWrittenCounts) {
  EXPECT_EQ(Judge({WriteVersion::k2, 5, false}, Reply(400, kThree), kNow).written, 3u);
  EXPECT_EQ(Judge({WriteVersion::k2, 2, false}, Reply(400, kThree), kNow).written, 2u);
  EXPECT_EQ(Judge({WriteVersion::k1, 5, false}, Reply(400, kThree), kNow).written, 0u);
}

TEST(WriteAnswerTest, RetryAfterIsSecondsOrATime) {
  EXPECT_EQ(ParseRetryAfter("7", kNow), absl::Seconds(7));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:47 GMT", kNow), absl::Seconds(10));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:27 GMT", kNow), absl::ZeroDuration());
  EXPECT_EQ(ParseRetryAfter("86400", kNow), kLongestRetryAfter);
  EXPECT_EQ(ParseRetryAfter("soon", kNow), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("-1", kNow), std::nullopt);
  EXPECT_EQ(Judge({}, Reply(503, {{"retry-after", "7"}}), kNow).pause, absl::Seconds(7));
  EXPECT_EQ(Judge({}, Reply(503), kNow).pause, std::nullopt);
}

}  // namespace
}  // namespace tacho::server::forward
