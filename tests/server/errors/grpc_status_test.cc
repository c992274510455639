#include "server/errors/grpc_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"

namespace tacho::server::errors {
namespace {

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  return rich;
}

TEST(GrpcStatusTest, EveryCodeKeepsItsMeaning) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status =
        ToGrpcStatus(absl::Status(static_cast<absl::StatusCode>(code), "why"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_message(), "why");
    if (code == static_cast<int>(absl::StatusCode::kUnavailable)) continue;
    EXPECT_EQ(status.error_details(), "") << "nothing to say beyond the text";
  }
}

TEST(GrpcStatusTest, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus(), 1);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
}

TEST(GrpcStatusTest, RetryDelayTravelsAsRetryInfo) {
  const auto rich = Details(ToGrpcStatus(absl::UnavailableError("full"), 500));
  EXPECT_EQ(rich.code(), 14);
  EXPECT_EQ(rich.message(), "full");
  ASSERT_EQ(rich.details_size(), 1);
  google::rpc::RetryInfo info;
  ASSERT_TRUE(rich.details(0).UnpackTo(&info));
  EXPECT_EQ(info.retry_delay().seconds(), 2) << "half way from 1 s to 3 s";
  EXPECT_EQ(info.retry_delay().nanos(), 0);
}

TEST(GrpcStatusTest, InvalidFieldIsNamedInTextAndDetails) {
  const grpc::Status status = ToGrpcStatus(InvalidFieldError("batch.sequence", "must not be 0"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "batch.sequence: must not be 0");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(Details(status).details(0).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "batch.sequence");
  EXPECT_EQ(bad.field_violations(0).description(), "must not be 0");
}

}  // namespace
}  // namespace tacho::server::errors
