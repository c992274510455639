// WatchConditions over gRPC, with a board that the test writes on.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <prometheus/text_serializer.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "server/query/query_service.h"
#include "tests/server/memory_store.h"
#include "tests/support/patient_context.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

constexpr char kCutOff[] = "code=\"RESOURCE_EXHAUSTED\",method=\"WatchConditions\"";

// A condition whose message is long, so that some ten thousand fill what a connection holds.
conditions::JudgedConditionPtr Long(const std::string& job) {
  conditions::JudgedCondition condition;
  condition.job = job;
  condition.name = "Stalled";
  condition.status = conditions::ConditionStatus::kTrue;
  condition.finding.message = std::string(1000, 'x');
  return std::make_shared<const conditions::JudgedCondition>(condition);
}

class Watcher {
 public:
  explicit Watcher(v1::Query::Stub* stub)
      : reader_(stub->WatchConditions(&context_, v1::WatchConditionsRequest())) {}

  bool ReadUntilLive() {
    while (!live_ && Read()) {
    }
    return live_;
  }
  bool ReadUntil(const std::string& job) {
    while (Read()) {
      for (const auto& condition : message_.conditions()) {
        if (condition.job() == job) return true;
      }
    }
    return false;
  }
  grpc::Status ReadToTheEnd() {
    while (Read()) {
    }
    return reader_->Finish();
  }

 private:
  bool Read() {
    if (!reader_->Read(&message_)) return false;
    live_ = live_ || message_.live();
    return true;
  }

  PatientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchConditionsResponse>> reader_;
  v1::WatchConditionsResponse message_;
  bool live_ = false;
};

class ConditionsWatchTest : public testing::Test {
 protected:
  ConditionsWatchTest() {
    QueryServiceOptions options;
    options.store = store_.get();
    options.conditions = &board_;
    options.limits.set_timeout(absl::ToInt64Nanoseconds(absl::Minutes(1)));
    options.limits.set_max_concurrent(2);
    options.limits.set_max_watches(16);
    options.registry = registry_;
    service_ = std::make_unique<QueryService>(std::move(options));
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~ConditionsWatchTest() override {
    service_->Drain();
    server_->Shutdown();
  }

  // On a connection of its own, as what one holds is shared by its calls.
  std::unique_ptr<Watcher> Watch() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs_.push_back(v1::Query::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments)));
    return std::make_unique<Watcher>(stubs_.back().get());
  }

  // Makes changes until a client that does not read is cut off; `fast` reads, so that each change
  // is served before the next one comes.
  void ChangeUntilOneIsCutOff(Watcher* fast) {
    const conditions::JobConditions changes(1000, Long("slow"));
    for (int i = 0; prometheus::TextSerializer().Serialize(registry_->Collect()).find(kCutOff) ==
                    std::string::npos;
         ++i) {
      ASSERT_LT(i, 300);
      board_.Put("slow", {}, changes);
      const std::string last = "last-" + std::to_string(i);
      board_.Put(last, {}, {Long(last)});
      ASSERT_TRUE(fast->ReadUntil(last));
    }
  }

  MemoryStore store_;
  conditions::ConditionBoard board_;
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  std::unique_ptr<QueryService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::vector<std::unique_ptr<v1::Query::Stub>> stubs_;
};

TEST_F(ConditionsWatchTest, EndsAClientThatStopsReading) {
  const auto slow = Watch();
  ASSERT_TRUE(slow->ReadUntilLive());
  const auto fast = Watch();
  ASSERT_TRUE(fast->ReadUntilLive());
  ChangeUntilOneIsCutOff(fast.get());
  const grpc::Status status = slow->ReadToTheEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("watch again"));
  board_.Put("other", {}, {Long("other")});
  EXPECT_TRUE(fast->ReadUntil("other")) << "who reads goes on";
}

TEST_F(ConditionsWatchTest, EndsAClientThatNeverReadsWhatThereIs) {
  board_.Put("much", conditions::JobConditions(20'000, Long("much")), {});
  const auto slow = Watch();
  const auto fast = Watch();
  ASSERT_TRUE(fast->ReadUntilLive());
  ChangeUntilOneIsCutOff(fast.get());
  EXPECT_EQ(slow->ReadToTheEnd().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace tacho::server::query
