#include "server/interop/otlp_door.h"

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "server/http/content.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kJson[] = R"({"resourceMetrics":[{"resource":{"attributes":[
  {"key":"service.name","value":{"stringValue":"vision"}},
  {"key":"host.name","value":{"stringValue":"h1"}}]},
  "scopeMetrics":[{"scope":{"name":"x"},"metrics":[{"name":"loss","unit":"1","gauge":{"dataPoints":[
    {"timeUnixNano":"1700000000000000000","asDouble":0.5,"unknownField":1},
    {"timeUnixNano":"1700000001000000000","asInt":"3"}]}}]}]}]})";

class OtlpDoorTest : public IntakeTest {
 protected:
  OtlpDoorTest() {
    config_.set_max_request_bytes(1 << 20);
    config_.set_max_series(1000);
    for (const char* name : {"service.name", "host.name"}) {
      config_.add_otlp_resource_attributes(name);
    }
    door_ = std::make_unique<OtlpDoor>(OtlpOptions{intake_.get(), {}, config_, &registry_});
  }
  http::HttpResponse Post(std::string body, const std::string& type,
                          const std::string& encoding = "") {
    http::HttpRequest request;
    request.method = "POST";
    request.headers = {{"content-type", type}};
    if (!encoding.empty()) request.headers.emplace_back("content-encoding", encoding);
    request.body = std::move(body);
    const auto responder = std::make_shared<bridge::RecordedResponder>();
    door_->Handle(request, responder);
    return responder->answer();
  }
  static OtlpDoor::Request FromJson() {
    OtlpDoor::Request request;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(kJson, &request, options).ok());
    return request;
  }

  config::v1::Interop config_;
  std::unique_ptr<OtlpDoor> door_;
};

TEST_F(OtlpDoorTest, JsonIsStoredAndAnsweredInJson) {
  const auto response = Post(kJson, "application/json");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, "{}") << "partial_success is not set";
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(0, 0.5), Pair(1000, 3)));
}

TEST_F(OtlpDoorTest, ProtobufIsStoredPackedOrNot) {
  const std::string body = FromJson().SerializeAsString();
  EXPECT_EQ(Post(body, "application/x-protobuf").status, 200);
  const auto response = Post(*http::Gzip(body), "application/x-protobuf", "gzip");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/x-protobuf");
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(0, 0.5), Pair(1000, 3)));
}

TEST_F(OtlpDoorTest, AnEmptyRequestIsASuccess) {
  EXPECT_EQ(Post("", "application/x-protobuf").status, 200);
  EXPECT_EQ(Post("{}", "application/json").status, 200);
}

TEST_F(OtlpDoorTest, WhatIsRefusedForGoodIsAPartialSuccess) {
  auto request = FromJson();
  auto* const points = request.mutable_resource_metrics(0)
                           ->mutable_scope_metrics(0)
                           ->mutable_metrics(0)
                           ->mutable_gauge();
  points->mutable_data_points(0)->set_time_unix_nano(1);
  const auto answer = Post(request.SerializeAsString(), "application/x-protobuf");
  EXPECT_EQ(answer.status, 200);
  OtlpDoor::Response response;
  ASSERT_TRUE(response.ParseFromString(answer.body));
  EXPECT_EQ(response.partial_success().rejected_data_points(), 1);
  EXPECT_THAT(response.partial_success().error_message(), HasSubstr("storage.retention"));
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(1000, 3)));
}

TEST_F(OtlpDoorTest, FailuresAreAStatusInTheRequestsForm) {
  auto response = Post("{", "application/json");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("\"message\":"));
  response = Post("no protobuf", "application/x-protobuf");
  EXPECT_EQ(response.status, 400);
  google::rpc::Status status;
  ASSERT_TRUE(status.ParseFromString(response.body));
  EXPECT_THAT(status.message(), HasSubstr("ExportMetricsServiceRequest"));
  EXPECT_EQ(Post(kJson, "text/plain").status, 415);
  EXPECT_EQ(Post(kJson, "application/json", "br").status, 415);
  EXPECT_EQ(Post("\x1f\x8b no gzip", "application/json", "gzip").status, 400);
  EXPECT_THAT(Stored("loss"), IsEmpty());
}

TEST_F(OtlpDoorTest, JsonThatIsNestedWithoutEndIsRefused) {
  const auto response = Post(std::string(200'000, '['), "application/json");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("in each other"));
}

TEST_F(OtlpDoorTest, AGzipBombIsRefused) {
  const auto bomb = *http::Gzip(std::string(64 << 20, ' '));
  EXPECT_LT(bomb.size(), 1u << 20);
  EXPECT_EQ(Post(bomb, "application/json", "gzip").status, 413);
  const auto cut = *http::Gzip(kJson);
  EXPECT_EQ(Post(cut.substr(0, cut.size() / 2), "application/json", "gzip").status, 400);
}

TEST_F(OtlpDoorTest, WhatTimeHealsComesAgain) {
  admission_.StartDraining();
  const auto response = Post(kJson, "application/json");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.HasHeader("Retry-After"));
}

}  // namespace
}  // namespace tacho::server::interop
