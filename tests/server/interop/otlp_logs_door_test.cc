#include "server/interop/otlp_logs_door.h"

#include <set>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "server/http/content.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// As an SDK sends it, with what the collector does not read.
constexpr char kJson[] = R"({"resourceLogs":[{"resource":{"attributes":[
  {"key":"service.name","value":{"stringValue":"vision"}},
  {"key":"host.name","value":{"stringValue":"h1"}},
  {"key":"tacho.task","value":{"intValue":"3"}}]},
  "scopeLogs":[{"scope":{"name":"x"},"logRecords":[
    {"timeUnixNano":"1700000000000000000","severityNumber":9,"severityText":"INFO",
     "eventName":"checkpoint_saved","body":{"stringValue":"saved"},
     "attributes":[{"key":"step","value":{"intValue":"100"}},
                   {"key":"path","value":{"stringValue":"/ckpt/100"}}],
     "traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"}]}]}]})";

class OtlpLogsDoorTest : public IntakeTest {
 protected:
  OtlpLogsDoorTest() {
    config_.set_max_request_bytes(1 << 20);
    for (const char* name : {"service.name", "host.name", "tacho.task"}) {
      config_.add_otlp_resource_attributes(name);
    }
    MakeDoor();
  }
  void MakeDoor() {
    door_ = std::make_unique<OtlpLogsDoor>(
        OtlpLogsOptions{intake_.get(), {}, config_, &registry_, now_});
  }
  std::shared_ptr<bridge::RecordedResponder> Send(std::string body, const std::string& type,
                                                  const std::string& encoding = "") {
    http::HttpRequest request;
    request.method = "POST";
    request.headers = {{"content-type", type}};
    if (!encoding.empty()) request.headers.emplace_back("content-encoding", encoding);
    request.body = std::move(body);
    const auto responder = std::make_shared<bridge::RecordedResponder>();
    door_->Handle(request, responder);
    return responder;
  }
  http::HttpResponse Post(std::string body, const std::string& type,
                          const std::string& encoding = "") {
    return Send(std::move(body), type, encoding)->answer();
  }
  static OtlpLogsDoor::Request FromJson() {
    OtlpLogsDoor::Request request;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(kJson, &request, options).ok());
    return request;
  }
  static opentelemetry::proto::logs::v1::LogRecord* RecordOf(OtlpLogsDoor::Request* request) {
    return request->mutable_resource_logs(0)->mutable_scope_logs(0)->mutable_log_records(0);
  }
  // The partial success of a request that is answered with 200.
  OtlpLogsDoor::Response Answer(const OtlpLogsDoor::Request& request) {
    const auto answer = Post(request.SerializeAsString(), "application/x-protobuf");
    EXPECT_EQ(answer.status, 200) << answer.body;
    OtlpLogsDoor::Response response;
    EXPECT_TRUE(response.ParseFromString(answer.body));
    return response;
  }
  std::vector<storage::Event> Events(const std::string& job = "vision") {
    auto events = store_->Events(job, INT64_MIN, INT64_MAX);
    EXPECT_TRUE(events.ok()) << events.status();
    return *std::move(events);
  }

  config::v1::Interop config_;
  std::unique_ptr<OtlpLogsDoor> door_;
};

TEST_F(OtlpLogsDoorTest, JsonBecomesAnEventOfItsJob) {
  const auto response = Post(kJson, "application/json");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, "{}") << "partial_success is not set";
  const auto events = Events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].source.host, "h1");
  EXPECT_EQ(events[0].source.task, 3u);
  EXPECT_EQ(events[0].time_ns, ingest::kNowNs);
  EXPECT_EQ(events[0].kind, "checkpoint_saved");
  EXPECT_EQ(events[0].message, "saved");
  EXPECT_EQ(events[0].step, 100);
  EXPECT_THAT(events[0].fields, ElementsAre(Pair("path", "/ckpt/100")));
}

TEST_F(OtlpLogsDoorTest, ARepeatIsNotStoredAgain) {
  const std::string body = FromJson().SerializeAsString();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Post(body, "application/x-protobuf").status, 200);
  Restart();  // What is stored is known without the memory of the collector, too.
  MakeDoor();
  EXPECT_EQ(Post(*http::Gzip(body), "application/x-protobuf", "gzip").status, 200);
  EXPECT_THAT(Events(), SizeIs(1));
  EXPECT_THAT(store_.stored(), SizeIs(1)) << "watches hear of it once";
}

TEST_F(OtlpLogsDoorTest, EventsOfOneTimeThatDifferAreAllStored) {
  auto request = FromJson();
  auto* const scope = request.mutable_resource_logs(0)->mutable_scope_logs(0);
  *scope->add_log_records() = scope->log_records(0);
  for (const char* text : {"a", "b"}) {
    *scope->add_log_records() = scope->log_records(0);
    scope->mutable_log_records()->rbegin()->mutable_body()->set_string_value(text);
  }
  EXPECT_FALSE(Answer(request).has_partial_success());
  std::multiset<std::string> messages;
  for (const auto& event : Events()) messages.insert(event.message);
  EXPECT_THAT(messages, ElementsAre("a", "b", "saved"));
}

TEST_F(OtlpLogsDoorTest, OtherLogsAreRefusedPolitely) {
  auto request = FromJson();
  auto* const scope = request.mutable_resource_logs(0)->mutable_scope_logs(0);
  scope->add_log_records()->mutable_body()->set_string_value("GET / 200");
  const auto response = Answer(request);
  EXPECT_EQ(response.partial_success().rejected_log_records(), 1);
  EXPECT_THAT(response.partial_success().error_message(),
              AllOf(HasSubstr("only events"), HasSubstr("checkpoint_saved")));
  EXPECT_THAT(Events(), SizeIs(1));
}

TEST_F(OtlpLogsDoorTest, EventsThatBreakARuleAreRefusedAlone) {
  auto request = FromJson();
  auto* const scope = request.mutable_resource_logs(0)->mutable_scope_logs(0);
  for (int i = 0; i < 2; ++i) *scope->add_log_records() = scope->log_records(0);
  scope->mutable_log_records(1)->set_time_unix_nano(1);
  for (int i = 0; i < 40; ++i) {
    scope->mutable_log_records(2)->add_attributes()->set_key("k" + std::to_string(i));
  }
  const auto response = Answer(request);
  EXPECT_EQ(response.partial_success().rejected_log_records(), 2);
  EXPECT_THAT(response.partial_success().error_message(), HasSubstr("event.fields"));
  EXPECT_THAT(Events(), SizeIs(1));
  scope->mutable_log_records()->DeleteSubrange(2, 1);
  EXPECT_THAT(Answer(request).partial_success().error_message(), HasSubstr("storage.retention"));
}

TEST_F(OtlpLogsDoorTest, AnEventThatTheMappingDropsIsNoRefusal) {
  auto* const rule = config_.add_mapping();
  rule->set_drop(true);
  auto* const match = rule->add_match();
  match->set_name("__name__");
  match->set_pattern("checkpoint_.*");
  Restart(config_);
  MakeDoor();
  EXPECT_FALSE(Answer(FromJson()).has_partial_success());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(OtlpLogsDoorTest, FailuresAreAStatusInTheRequestsForm) {
  EXPECT_EQ(Post("{", "application/json").status, 400);
  const auto response = Post("no protobuf", "application/x-protobuf");
  EXPECT_EQ(response.status, 400);
  google::rpc::Status status;
  ASSERT_TRUE(status.ParseFromString(response.body));
  EXPECT_THAT(status.message(), HasSubstr("ExportLogsServiceRequest"));
  EXPECT_EQ(Post(kJson, "text/plain").status, 415);
}

TEST_F(OtlpLogsDoorTest, WhatTimeHealsComesAgain) {
  admission_.StartDraining();
  const auto response = Post(kJson, "application/json");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.HasHeader("Retry-After"));
}

// Whose disk the test works by hand.
class SlowDiskLogsTest : public OtlpLogsDoorTest {
 protected:
  void SetUp() override {}
};

TEST_F(SlowDiskLogsTest, ARepeatThatOvertakesTheFirstWaitsForIt) {
  const auto first = Send(kJson, "application/json");
  const auto second = Send(kJson, "application/json");
  EXPECT_FALSE(first->answered());
  EXPECT_FALSE(second->answered()) << "nothing is durable yet";
  store_.Commit();
  EXPECT_EQ(first->answer().status, 200);
  EXPECT_EQ(second->answer().status, 200);
  EXPECT_THAT(Events(), SizeIs(1));
}

TEST_F(SlowDiskLogsTest, AnEventThatTheDiskRefusesIsNotAcknowledged) {
  const auto first = Send(kJson, "application/json");
  const auto second = Send(kJson, "application/json");
  store_.Fail();
  for (const auto& one : {first, second}) {
    EXPECT_EQ(one->answer().status, 503);
    EXPECT_TRUE(one->answer().HasHeader("Retry-After"));
  }
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(SlowDiskLogsTest, AFullQueueIsARetry) {
  const auto first = Send(kJson, "application/json");
  ASSERT_TRUE(store_.AwaitQueued(1));
  store_.FillQueue();
  auto request = FromJson();
  RecordOf(&request)->set_event_name("tacho.other");
  const auto answer = Post(request.SerializeAsString(), "application/x-protobuf");
  EXPECT_EQ(answer.status, 503);
  store_.CommitAtOnce();
  EXPECT_EQ(first->answer().status, 200);  // It settles while the intake lives.
}

}  // namespace
}  // namespace tacho::server::interop
