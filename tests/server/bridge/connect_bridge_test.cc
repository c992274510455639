#include "server/bridge/connect_bridge.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/security/bridged_callers.h"
#include "server/security/grpc_caller.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/server/bridge/recorded_responder.h"

namespace tacho::server::bridge {
namespace {

using ::testing::HasSubstr;

// Endless for the job "endless", until it is cancelled.
class Numbers : public grpc::ServerWriteReactor<v1::RangeResponse> {
 public:
  Numbers(uint32_t count, std::atomic<int>* sent, absl::Notification* cancelled)
      : left_(count), sent_(sent), cancelled_(cancelled) {
    Next();
  }
  void OnWriteDone(bool ok) override { ok ? Next() : Finish(grpc::Status::CANCELLED); }
  void OnCancel() override { cancelled_->Notify(); }
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (left_-- == 0) return Finish({grpc::StatusCode::DATA_LOSS, "the end"});
    ++*sent_;
    message_.set_series_index(left_);
    message_.mutable_points()->mutable_values()->Resize(1000, 1.5);
    StartWrite(&message_);
  }

  uint32_t left_;
  std::atomic<int>* const sent_;
  absl::Notification* const cancelled_;
  v1::RangeResponse message_;
};

class Service final : public v1::Query::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override {
    const auto shown = security::CredentialsOf(*context);
    response->mutable_job()->set_name(
        absl::StrCat(request->job(), " for ", shown.token, " of ", security::PeerOf(*context)));
    auto* const reactor = context->DefaultReactor();
    reactor->Finish(request->job() == "none"
                        ? grpc::Status(grpc::StatusCode::NOT_FOUND, "job: no such job")
                        : grpc::Status::OK);
    return reactor;
  }
  // Never answers before its deadline.
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext*, const v1::ListJobsRequest*,
                                     v1::ListJobsResponse*) override {
    struct Waits : grpc::ServerUnaryReactor {
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    return new Waits;
  }
  grpc::ServerWriteReactor<v1::RangeResponse>* Range(grpc::CallbackServerContext*,
                                                     const v1::RangeRequest* request) override {
    const bool endless = request->selector().job() == "endless";
    return new Numbers(endless ? 1'000'000 : 3, &sent, &cancelled);
  }

  std::atomic<int> sent = 0;
  absl::Notification cancelled;
};

class ConnectBridgeTest : public testing::Test {
 protected:
  ConnectBridgeTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    bridge_ = std::make_unique<ConnectBridge>(server_->InProcessChannel(arguments));
  }
  ~ConnectBridgeTest() override {
    if (server_ != nullptr) server_->Shutdown();
  }

  std::shared_ptr<RecordedResponder> Ask(const std::string& method, const std::string& json,
                                         const std::string& timeout = "", bool reads = true) {
    http::HttpRequest request;
    request.method = "POST";
    request.path = "/tacho.v1.Query/" + method;
    request.headers = {{"content-type", "application/json"}};
    if (!timeout.empty()) request.headers.emplace_back("connect-timeout-ms", timeout);
    request.body = json;
    request.credentials.token = "secret";
    request.credentials.peer = "192.0.2.7";
    auto responder = std::make_shared<RecordedResponder>(reads);
    bridge_->Handle(std::move(request), responder);
    return responder;
  }

  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ConnectBridge> bridge_;
};

TEST_F(ConnectBridgeTest, CallsCarryTheirCaller) {
  const auto answer = Ask("GetJob", R"({"job":"bert"})")->answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(answer.body, R"({"job":{"name":"bert for secret of http:192.0.2.7"}})");
}

TEST_F(ConnectBridgeTest, AHandleFromASocketIsWorthNothing) {
  security::Credentials strong;
  strong.token = "strong";
  const auto entry = security::BridgedCallers::OfProcess().Add(strong);
  const auto stub = v1::Query::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata(security::kBridgedCallerMetadata, entry->handle());
  v1::GetJobRequest request;
  v1::GetJobResponse response;
  ASSERT_TRUE(stub->GetJob(&context, request, &response).ok());
  EXPECT_THAT(response.job().name(), HasSubstr(" for  of ipv4:127.0.0.1:"));
}

TEST_F(ConnectBridgeTest, UnknownHandlesShowNothing) {
  const auto stub = v1::Query::NewStub(server_->InProcessChannel({}));
  grpc::ClientContext context;
  context.AddMetadata(security::kBridgedCallerMetadata, std::string(16, 'x'));
  v1::GetJobRequest request;
  v1::GetJobResponse response;
  ASSERT_TRUE(stub->GetJob(&context, request, &response).ok());
  EXPECT_EQ(response.job().name(), " for  of unknown");
}

TEST_F(ConnectBridgeTest, ErrorsOfUnaryCalls) {
  const auto answer = Ask("GetJob", R"({"job":"none"})")->answer();
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, R"({"code":"not_found","message":"job: no such job"})");
}

TEST_F(ConnectBridgeTest, StreamsAllMessagesAndTheStatus) {
  const auto responder = Ask("Range", R"({"selector":{"job":"short"}})");
  const std::string body = responder->body();
  EXPECT_EQ(responder->answer().content_type, "application/x-ndjson");
  EXPECT_THAT(body, HasSubstr(R"("seriesIndex":2)"));
  EXPECT_THAT(body, HasSubstr(R"("seriesIndex":1)"));
  EXPECT_EQ(std::count(body.begin(), body.end(), '\n'), 4) << "the last message has index 0";
  EXPECT_TRUE(body.ends_with("{\"error\":{\"code\":\"data_loss\",\"message\":\"the end\"}}\n"));
}

TEST_F(ConnectBridgeTest, AClientThatDoesNotReadStopsTheStream) {
  const auto responder = Ask("Range", R"({"selector":{"job":"endless"}})", "", /*reads=*/false);
  while (!responder->WaitsForRoom()) absl::SleepFor(absl::Milliseconds(1));
  // A message has 6,000 bytes or more here, and gRPC holds a few ahead.
  const int sent = service_.sent;
  EXPECT_LT(sent, 200);
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_LE(service_.sent, sent + 20);
  responder->TakeAll();
  while (!responder->WaitsForRoom()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GT(service_.sent, sent);
  responder->Leave();
  service_.cancelled.WaitForNotification();
  EXPECT_THAT(responder->body(), HasSubstr("canceled"));
}

TEST_F(ConnectBridgeTest, AClientThatGoesCancelsACallThatWaits) {
  const auto responder = Ask("ListJobs", "{}");
  responder->Leave();
  EXPECT_EQ(responder->answer().status, 499);
}

TEST_F(ConnectBridgeTest, TimeoutsEndCalls) {
  const auto answer = Ask("ListJobs", "{}", "20")->answer();
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("deadline_exceeded"));
}

// The thread of gRPC's that ends the call must not be the one that lets go of the channel.
TEST_F(ConnectBridgeTest, TheBridgeGoesAfterItsCalls) {
  struct SlowResponder final : http::Responder {
    void Answer(http::HttpResponse) override {
      answers.Notify();
      absl::SleepFor(absl::Milliseconds(200));
    }
    void Begin(http::HttpResponse) override {}
    void Write(std::string) override {}
    void Finish() override {}
    size_t unsent() const override { return 0; }
    void OnRoom(std::function<void()> room) override { room(); }
    void OnGone(std::function<void()>) override {}

    absl::Notification answers;
  };
  http::HttpRequest request;
  request.method = "POST";
  request.path = "/tacho.v1.Query/GetJob";
  request.headers = {{"content-type", "application/json"}};
  request.body = "{}";
  const auto responder = std::make_shared<SlowResponder>();
  bridge_->Handle(std::move(request), responder);
  responder->answers.WaitForNotification();
  server_->Shutdown();
  bridge_.reset();
  EXPECT_EQ(responder.use_count(), 1) << "a call outlived its bridge";
  server_.reset();
}

TEST_F(ConnectBridgeTest, OtherContentTypesAreRefused) {
  http::HttpRequest request;
  request.method = "POST";
  request.path = "/tacho.v1.Query/GetJob";
  request.headers = {{"content-type", "text/plain"}};
  const auto responder = std::make_shared<RecordedResponder>();
  bridge_->Handle(std::move(request), responder);
  EXPECT_EQ(responder->answer().status, 415);
}

}  // namespace
}  // namespace tacho::server::bridge
