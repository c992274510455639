// The ingest service behind a real gRPC server on loopback, and a plain client of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "prometheus/registry.h"
#include "server/ingest/ingest_service.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/server/ingest/ingest_store.h"
#include "tests/support/patient_context.h"

namespace tacho::server::ingest {

// A stream as an agent has it.
class Client {
 public:
  explicit Client(int port)
      : channel_(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                     grpc::InsecureChannelCredentials())),
        stub_(v1::Ingest::NewStub(channel_)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    stream_ = stub_->Stream(&context_);
  }
  ~Client() {
    if (!ended_) context_.TryCancel();
    if (!ended_) stream_->Finish();
  }

  bool Send(const v1::ClientMessage& message) { return stream_->Write(message); }
  void Send(const std::vector<v1::ClientMessage>& messages) {
    for (const auto& message : messages) Send(message);
  }
  std::optional<v1::ServerMessage> Read() {
    v1::ServerMessage message;
    if (!stream_->Read(&message)) return std::nullopt;
    return message;
  }
  // Says Hello and returns the Welcome.
  v1::Welcome Greet(const v1::ClientMessage& hello = HelloMessage()) {
    Send(hello);
    const auto answer = Read();
    EXPECT_TRUE(answer.has_value() && answer->has_welcome());
    return answer.has_value() ? answer->welcome() : v1::Welcome();
  }
  // Reads until everything up to `sequence` is acknowledged; how many Acks that took, 0 if never.
  int AwaitDurable(uint64_t sequence) {
    for (int acks = 1;; ++acks) {
      const auto answer = Read();
      if (!answer.has_value()) return 0;
      if (answer->ack().durable_sequence() >= sequence) return acks;
    }
  }
  void HalfClose() { stream_->WritesDone(); }
  // Reads what is left, and returns how the stream ended.
  grpc::Status End() {
    while (const auto message = Read()) last_ = *message;
    ended_ = true;
    return stream_->Finish();
  }
  const v1::ServerMessage& last() const { return last_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Ingest::Stub> stub_;
  PatientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>> stream_;
  v1::ServerMessage last_;
  bool ended_ = false;
};

inline bool HasRetryInfo(const grpc::Status& status) {
  google::rpc::Status rich;
  google::rpc::RetryInfo info;
  if (!rich.ParseFromString(status.error_details())) return false;
  return std::any_of(rich.details().begin(), rich.details().end(), [&info](const auto& detail) {
    return detail.UnpackTo(&info) && info.retry_delay().seconds() >= 1;
  });
}

class IngestStreamTest : public testing::Test {
 protected:
  explicit IngestStreamTest(const config::v1::Collector::Ingest& limits = SmallLimits()) {
    IngestServiceOptions options;
    options.store = store_.get();
    options.registry = &registry_;
    options.quotas = &quotas_;
    options.limiting = &limiting_;
    options.clocks = &clocks_;
    options.limits = limits;
    options.retention = absl::Hours(24);
    options.ack_tick = absl::Milliseconds(1);
    options.now = [] { return absl::FromUnixNanos(kNowNs); };
    log::LogOptions log;
    log.write = [this](log::Level, absl::string_view line) {
      absl::MutexLock lock(&log_mutex_);
      absl::StrAppend(&logged_, line);
    };
    options.log = log::Log(std::move(log));
    service_ = std::make_unique<IngestService>(std::move(options));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes()));
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~IngestStreamTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    store_.Commit();  // Callbacks may come after the streams have gone.
  }

  double OpenStreams() {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "tacho_ingest_streams") return family.metric[0].gauge.value;
    }
    return -1;
  }
  double Throttled(const std::string& how) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "tacho_ingest_throttled_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label[0].value == how) return metric.counter.value;
      }
    }
    return -1;
  }
  void Reload(const config::v1::Quotas& quotas) {
    config::v1::Collector config;
    *config.mutable_quotas() = quotas;
    auto change = quotas_.Prepare(config);
    ASSERT_TRUE(change.ok()) << change.status();
    (*change)();
  }
  std::string Logged() {
    absl::MutexLock lock(&log_mutex_);
    return logged_;
  }
  bool AwaitNoStreams() {
    for (int i = 0; i < 2000 && OpenStreams() != 0; ++i) absl::SleepFor(absl::Milliseconds(5));
    return OpenStreams() == 0;
  }

  IngestStore store_{absl::FromUnixNanos(kNowNs)};
  AgentClocks clocks_{[] { return absl::FromUnixNanos(kNowNs); }};
  prometheus::Registry registry_;
  std::atomic<uint64_t> resident_{0};
  absl::Mutex log_mutex_;
  std::string logged_ ABSL_GUARDED_BY(log_mutex_);
  limits::SeriesLimiting limiting_{store_.get(), &registry_, config::v1::Limits()};
  edge::Quotas quotas_{{.config = SmallQuotas(), .registry = &registry_, .resident = [this] {
                          return resident_.load();
                        }}};
  std::unique_ptr<IngestService> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace tacho::server::ingest
