// The whole collector in one process, on a file system in memory, seen by plain clients.
#include "server/collector.h"

#include <atomic>
#include <bit>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "rocksdb/env.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/support/call_bytes.h"
#include "tests/support/patient_context.h"

namespace tacho::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    EXPECT_TRUE(config::ParseYaml("listen: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\n"
                                  "storage: {path: /data, retention: 0s}\n"
                                  "admin: {listen: 'off'}\n",
                                  "test", &config_)
                    .ok());
  }

  absl::StatusOr<std::unique_ptr<Collector>> Start() {
    CollectorWorld world;
    world.env = env_.get();
    return Collector::Start(config_, std::move(world));
  }
  std::unique_ptr<Collector> StartOrDie() {
    auto collector = Start();
    EXPECT_TRUE(collector.ok()) << collector.status();
    if (!collector.ok()) std::abort();
    return *std::move(collector);
  }
  static std::shared_ptr<grpc::Channel> Connect(const Collector& collector) {
    return grpc::CreateChannel("127.0.0.1:" + std::to_string(collector.grpc_port()),
                               grpc::InsecureChannelCredentials());
  }

  // Sends the messages on one stream and half-closes it; returns the last answer.
  static v1::ServerMessage Deliver(const Collector& collector,
                                   const std::vector<v1::ClientMessage>& messages) {
    const auto stub = v1::Ingest::NewStub(Connect(collector));
    PatientContext context;
    auto stream = stub->Stream(&context);
    for (const auto& message : messages) stream->Write(message);
    stream->WritesDone();
    v1::ServerMessage last;
    for (v1::ServerMessage answer; stream->Read(&answer);) last = answer;
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return last;
  }

  static std::vector<uint64_t> StoredBits(const Collector& collector, const std::string& metric) {
    const auto stub = v1::Query::NewStub(Connect(collector));
    PatientContext context;
    v1::RangeRequest request;
    request.mutable_selector()->set_job("vision");
    request.mutable_selector()->add_metrics(metric);
    auto reader = stub->Range(&context, request);
    std::vector<uint64_t> bits;
    for (v1::RangeResponse piece; reader->Read(&piece);) {
      for (const double value : piece.points().values()) {
        bits.push_back(std::bit_cast<uint64_t>(value));
      }
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return bits;
  }

  // Calls any unary method with an empty request; returns the bytes of the answer.
  static std::pair<grpc::Status, std::string> Call(const Collector& collector,
                                                   const std::string& method) {
    return CallBytes(Connect(collector), method, "");
  }

  std::unique_ptr<rocksdb::Env> env_;
  config::v1::Collector config_;
};

TEST_F(CollectorTest, WhatIsAcknowledgedIsThereAfterARestartBitForBit) {
  const std::vector<uint64_t> losses = {0x7ff8000000abcdef, std::bit_cast<uint64_t>(2.5),
                                        0x7ff0000000000000};
  std::vector<double> values;
  for (const uint64_t bits : losses) {
    values.push_back(std::bit_cast<double>(bits));
    values.push_back(0.5);
  }
  {
    const auto collector = StartOrDie();
    const auto last =
        Deliver(*collector, {ingest::HelloMessage(), ingest::LayoutMessage(),
                             ingest::BatchMessage(1, values, 3), ingest::EventMessage(2)});
    EXPECT_EQ(last.ack().durable_sequence(), 2u);
    EXPECT_EQ(StoredBits(*collector, "loss"), losses);
    EXPECT_TRUE(collector->Drain().ok());
  }
  const auto collector = StartOrDie();
  EXPECT_EQ(StoredBits(*collector, "loss"), losses);
  // Sent again after the restart, as an agent does that never saw the Ack.
  const auto last = Deliver(*collector, {ingest::HelloMessage(), ingest::LayoutMessage(),
                                         ingest::BatchMessage(1, values, 3)});
  EXPECT_EQ(last.ack().durable_sequence(), 2u);
  EXPECT_EQ(StoredBits(*collector, "loss"), losses);
}

TEST_F(CollectorTest, BatchWithNothingLeftToStoreDoesNotComeBack) {
  config_.mutable_storage()->set_retention(absl::ToInt64Nanoseconds(absl::Hours(1)));
  const auto collector = StartOrDie();
  auto hello = ingest::HelloMessage();  // Of an agent that agrees with the collector's clock.
  hello.mutable_hello()->set_clock_unix_ns(absl::ToUnixNanos(absl::Now()));
  const auto last = Deliver(*collector, {hello, ingest::LayoutMessage(), ingest::BatchMessage(1)});
  EXPECT_EQ(last.ack().durable_sequence(), 1u);
  ASSERT_EQ(last.ack().rejects_size(), 1);
  EXPECT_EQ(last.ack().rejects(0).reason(), v1::Reject::REASON_TOO_OLD);
  EXPECT_EQ(last.ack().rejects(0).samples(), 2u);
}

TEST_F(CollectorTest, SeriesPastTheLimitAreReportedWhileTheOthersAreStored) {
  config_.mutable_limits()->set_series(1);
  const auto collector = StartOrDie();
  const auto last = Deliver(*collector, {ingest::HelloMessage(), ingest::LayoutMessage(2),
                                         ingest::BatchMessage(1, {1, 2})});
  EXPECT_EQ(last.ack().durable_sequence(), 1u);
  ASSERT_EQ(last.ack().rejects_size(), 1);
  EXPECT_EQ(last.ack().rejects(0).reason(), v1::Reject::REASON_SERIES_LIMIT);
  EXPECT_THAT(StoredBits(*collector, "loss"), ElementsAre(std::bit_cast<uint64_t>(1.0)));
  EXPECT_THAT(StoredBits(*collector, "metric_1"), ElementsAre());
}

TEST_F(CollectorTest, WhatIsFoldedAddsUpToWhatWasSent) {
  auto* rule = config_.mutable_limits()->add_rules();
  rule->set_job("vis.*");
  rule->set_metric("loss");
  for (const auto set : {&config::v1::Limits::Rule::set_series_per_job,
                         &config::v1::Limits::Rule::set_values_per_label,
                         &config::v1::Limits::Rule::set_overflow_series_per_job}) {
    (rule->*set)(-1);
  }
  for (const auto set : {&config::v1::Limits::Rule::set_labels_per_series,
                         &config::v1::Limits::Rule::set_metric_name_bytes,
                         &config::v1::Limits::Rule::set_label_name_bytes,
                         &config::v1::Limits::Rule::set_label_value_bytes}) {
    (rule->*set)(-1);
  }
  rule->set_series_per_metric(1);
  rule->set_action("fold");
  const auto collector = StartOrDie();
  auto layout = ingest::LayoutMessage(4);
  for (auto& series : *layout.mutable_layout()->mutable_series()) {
    series.mutable_metric()->set_name("loss");
  }
  const auto last =
      Deliver(*collector, {ingest::HelloMessage(), layout, ingest::BatchMessage(1, {1, 2, 3, 4})});
  ASSERT_EQ(last.ack().folded_size(), 1);
  EXPECT_EQ(last.ack().folded(0).series(), 3u);
  EXPECT_EQ(last.ack().folded(0).reason(), v1::Reject::REASON_METRIC_LIMIT);
  EXPECT_THAT(last.ack().folded(0).detail(), HasSubstr("limits.rules[0].series_per_metric is 1"));
  EXPECT_THAT(StoredBits(*collector, "loss"),
              ElementsAre(std::bit_cast<uint64_t>(1.0), std::bit_cast<uint64_t>(9.0)));
  const auto stub = v1::Query::NewStub(Connect(*collector));
  grpc::ClientContext context;
  v1::CardinalityRequest request;
  request.set_job("vision");
  v1::CardinalityResponse answer;
  ASSERT_TRUE(stub->Cardinality(&context, request, &answer).ok());
  ASSERT_EQ(answer.metrics_size(), 1);
  EXPECT_EQ(answer.metrics(0).used(), 1u);
  EXPECT_EQ(answer.metrics(0).limit(), 1u);
  ASSERT_EQ(answer.refusals_size(), 1);
  EXPECT_EQ(answer.refusals(0).action(), "fold");
  EXPECT_EQ(answer.refusals(0).series(), 3u);
  EXPECT_EQ(answer.refusals(0).example(), "loss{chip=\"1\"}");
}

TEST_F(CollectorTest, HealthServesAndReflectionIsOn) {
  const auto collector = StartOrDie();
  const auto [health, answer] = Call(*collector, "/grpc.health.v1.Health/Check");
  EXPECT_TRUE(health.ok()) << health.error_message();
  EXPECT_EQ(answer, std::string("\x08\x01")) << "status SERVING";
  const auto [reflection, none] =
      Call(*collector, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  EXPECT_NE(reflection.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CollectorTest, AClockThatJumpsMakesItNotReadyUntilTheClockIsBack) {
  std::atomic<int> days_ahead = 0;
  CollectorWorld world;
  world.env = env_.get();
  world.now = [&] { return absl::Now() + absl::Hours(24) * days_ahead.load(); };
  world.clock_round = absl::Milliseconds(1);
  auto collector = Collector::Start(config_, std::move(world));
  ASSERT_TRUE(collector.ok()) << collector.status();
  const auto await_health = [&](const std::string& expected) {
    std::string answer;
    for (int i = 0; i < 5000 && answer != expected; ++i) {
      answer = Call(**collector, "/grpc.health.v1.Health/Check").second;
    }
    return answer == expected;
  };
  const std::string serving("\x08\x01");
  const std::string not_serving("\x08\x02");
  EXPECT_TRUE(await_health(serving));
  days_ahead = 100;
  EXPECT_TRUE(await_health(not_serving));
  days_ahead = 0;
  EXPECT_TRUE(await_health(serving));
}

TEST_F(CollectorTest, TakenPortIsNamed) {
  const auto first = StartOrDie();
  config_.mutable_storage()->set_path("/other");
  config_.mutable_listen()->set_grpc("127.0.0.1:" + std::to_string(first->grpc_port()));
  const auto second = Start();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(config_.listen().grpc()));
}

TEST_F(CollectorTest, DrainEndsStreamsAndMayBeCalledAgain) {
  const auto collector = StartOrDie();
  const auto stub = v1::Ingest::NewStub(Connect(*collector));
  PatientContext context;
  auto stream = stub->Stream(&context);
  stream->Write(ingest::HelloMessage());
  v1::ServerMessage answer;
  ASSERT_TRUE(stream->Read(&answer));
  EXPECT_TRUE(collector->Drain().ok());
  while (stream->Read(&answer)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(collector->Drain().ok());
}

}  // namespace
}  // namespace tacho::server
