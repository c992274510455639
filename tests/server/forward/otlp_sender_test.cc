// A gRPC server that answers as it likes: what a receiver of OTLP gets, and how often it is asked.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "interop/google_rpc.pb.h"
#include "interop/otlp_metrics_service.grpc.pb.h"
#include "proto/base/timed_wait.h"
#include "server/forward/receiver.h"
#include "tests/server/forward/eager_receiver.h"
#include "tests/server/memory_store.h"
#include "tests/support/certificates.h"

namespace tacho::server::forward {
namespace {

using opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
using opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;
using opentelemetry::proto::collector::metrics::v1::MetricsService;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr int64_t kBaseNs = int64_t{1'700'000'000} * 1'000'000'000;

std::vector<double> ValuesOf(const ExportMetricsServiceRequest& request) {
  std::vector<double> values;
  for (const auto& resource : request.resource_metrics()) {
    for (const auto& scope : resource.scope_metrics()) {
      for (const auto& metric : scope.metrics()) {
        for (const auto& point : metric.gauge().data_points()) values.push_back(point.as_double());
      }
    }
  }
  return values;
}

class OddService final : public MetricsService::Service {
 public:
  using Answer = std::function<grpc::Status(const ExportMetricsServiceRequest&, int number,
                                            ExportMetricsServiceResponse*)>;

  grpc::Status Export(grpc::ServerContext* context, const ExportMetricsServiceRequest* request,
                      ExportMetricsServiceResponse* response) override {
    absl::MutexLock lock(&mutex_);
    const grpc::Status status = answer_ ? answer_(*request, ++number_, response) : grpc::Status::OK;
    metadata_.clear();
    for (const auto& [name, value] : context->client_metadata()) {
      metadata_[std::string(name.data(), name.size())] = std::string(value.data(), value.size());
    }
    if (status.ok() && response->partial_success().rejected_data_points() == 0) {
      for (const double value : ValuesOf(*request)) ++got_[value];
    }
    return status;
  }

  void AnswerWith(Answer answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  bool WaitFor(size_t samples) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return got_.size() >= samples;
    };
    return AwaitFor(&mutex_, absl::Condition(&enough), absl::Seconds(60));
  }
  std::map<double, int> got() {
    absl::MutexLock lock(&mutex_);
    return got_;
  }
  std::map<std::string, std::string> metadata() {
    absl::MutexLock lock(&mutex_);
    return metadata_;
  }

 private:
  absl::Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  int number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<double, int> got_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> metadata_ ABSL_GUARDED_BY(mutex_);
};

grpc::Status LaterStatus(grpc::StatusCode code, absl::Duration delay) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  google::rpc::Status details;
  details.add_details()->PackFrom(info);
  return {code, "later", details.SerializeAsString()};
}

class OtlpSenderTest : public ::testing::Test {
 protected:
  OtlpSenderTest() {
    options_ = EagerReceiver("otel", store_.get(), &registry_);
    options_.config.set_protocol("otlp");
    options_.config.set_compression("gzip");
    options_.config.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(30)));
    Serve("127.0.0.1:0", grpc::InsecureServerCredentials());
    options_.config.set_url(absl::StrCat("http://127.0.0.1:", port_));
  }
  ~OtlpSenderTest() override { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  void Serve(const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& by) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, by, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Add(int first, int count) {
    const auto series = store_.AddSeries("job", MetricNamed("loss"), 1, "h1");
    std::vector<TestSample> samples;
    for (int i = first; i < first + count; ++i) {
      samples.push_back({.time_ns = kBaseNs + i, .value = double(i)});
    }
    store_.AddSamples(series, samples);
  }
  // Runs until so many distinct samples have come, and the receiver lacks nothing.
  void RunUntil(size_t samples) {
    auto receiver = Receiver::Create(options_);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    (*receiver)->Start();
    EXPECT_TRUE(service_.WaitFor(samples)) << service_.got().size() << " samples";
    for (int i = 0; i < 30'000 && (*receiver)->Lag() > absl::ZeroDuration(); ++i) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    (*receiver)->Stop();
  }
  static std::map<double, int> Once(int first, int count) {
    std::map<double, int> all;
    for (int i = first; i < first + count; ++i) all[i] = 1;
    return all;
  }
  double Value(const std::string& name) {
    double sum = 0;
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric) sum += metric.counter.value;
    }
    return sum;
  }

  prometheus::Registry registry_;
  MemoryStore store_{4};
  TestFiles files_;
  OddService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  ReceiverOptions options_;
};

TEST_F(OtlpSenderTest, EverythingComesOnceAndGoesOnAfterAnEnd) {
  for (const char* compression : {"gzip", "none"}) {
    options_.config.set_compression(compression);
    const int before = static_cast<int>(service_.got().size());
    Add(before, 50);
    store_.Reopen();
    options_.store = store_.get();
    RunUntil(static_cast<size_t>(before) + 50);
  }
  EXPECT_EQ(service_.got(), Once(0, 100));
  EXPECT_EQ(Value("tacho_forward_samples_total"), 100);
  EXPECT_EQ(Value("tacho_forward_retries_total"), 0);
}

TEST_F(OtlpSenderTest, TroubleOfTheReceiverLosesNothing) {
  service_.AnswerWith([](const auto&, int number, auto*) {
    return number % 3 != 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "away") : grpc::Status::OK;
  });
  Add(0, 20);
  RunUntil(20);
  EXPECT_EQ(service_.got(), Once(0, 20));
  EXPECT_EQ(Value("tacho_forward_retries_total"), 10);
}

TEST_F(OtlpSenderTest, APauseThatTheReceiverAsksForIsWaitedFor) {
  service_.AnswerWith([](const auto&, int number, auto*) {
    return number == 1 ? LaterStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, absl::Seconds(1))
                       : grpc::Status::OK;
  });
  Add(0, 1);
  const absl::Time began = absl::Now();
  RunUntil(1);
  EXPECT_GE(absl::Now() - began, absl::Seconds(1));
}

TEST_F(OtlpSenderTest, WhatIsRejectedIsCountedAndDoesNotComeAgain) {
  service_.AnswerWith([](const auto&, int number, ExportMetricsServiceResponse* response) {
    if (number == 2) {
      response->mutable_partial_success()->set_rejected_data_points(3);
      response->mutable_partial_success()->set_error_message("too old");
    }
    return number == 3 ? grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no") : grpc::Status::OK;
  });
  Add(0, 20);
  RunUntil(12);  // The test's server keeps nothing of a request of which it rejects a part.
  EXPECT_EQ(Value("tacho_forward_samples_left_out_total"), 3 + 4);
  EXPECT_EQ(Value("tacho_forward_samples_total"), 13);
  EXPECT_EQ(Value("tacho_forward_retries_total"), 0);
}

TEST_F(OtlpSenderTest, WhatIsTooLargeComesInSmallerRequests) {
  options_.config.set_max_samples(16);
  service_.AnswerWith([](const ExportMetricsServiceRequest& request, int, auto*) {
    return ValuesOf(request).size() > 3
               ? grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too large")
               : grpc::Status::OK;
  });
  Add(0, 20);
  RunUntil(20);
  EXPECT_EQ(service_.got(), Once(0, 20));
  EXPECT_EQ(Value("tacho_forward_samples_left_out_total"), 0);
}

TEST_F(OtlpSenderTest, HeadersAndTheTokenGoAlong) {
  (*options_.config.mutable_headers())["X-Scope-OrgID"] = "team";
  options_.config.set_bearer_token_file(files_.Write("token", "secret-of-the-receiver\n"));
  Add(0, 4);
  RunUntil(4);
  EXPECT_THAT(service_.metadata(), Contains(Pair("x-scope-orgid", "team")));
  EXPECT_THAT(service_.metadata(),
              Contains(Pair("authorization", "Bearer secret-of-the-receiver")));
  EXPECT_THAT(service_.metadata(),
              Contains(Pair("user-agent", HasSubstr("tacho-collector/1.2.3"))));
}

TEST_F(OtlpSenderTest, ATokenThatIsNoHeaderWaitsForABetterOne) {
  options_.config.set_bearer_token_file(files_.Write("token", "caf\xc3\xa9"));
  Add(0, 4);
  auto receiver = Receiver::Create(options_);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  (*receiver)->Start();
  for (int i = 0; i < 30'000 && Value("tacho_forward_retries_total") < 3; ++i) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_GE(Value("tacho_forward_retries_total"), 3);
  EXPECT_TRUE(service_.got().empty());
  files_.Write("token", "coffee");
  EXPECT_TRUE(service_.WaitFor(4));
  (*receiver)->Stop();
}

TEST_F(OtlpSenderTest, OverTlsTheReceiverMustHaveACertificateOfTheAuthorities) {
  const auto authority = TestCertificate::Authority("test authority");
  const auto own = TestCertificate::Loopback(authority, "receiver");
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({own.key_pem(), own.pem()});
  server_->Shutdown(absl::ToChronoTime(absl::Now()));
  Serve("127.0.0.1:0", grpc::SslServerCredentials(tls));
  options_.config.set_url(absl::StrCat("https://127.0.0.1:", port_));
  Add(0, 4);
  // One that signed nothing of it.
  options_.config.set_ca_file(files_.Write("other.pem", TestCertificate::Authority("other").pem()));
  auto receiver = Receiver::Create(options_);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  (*receiver)->Start();
  for (int i = 0; i < 30'000 && Value("tacho_forward_retries_total") < 2; ++i) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  (*receiver)->Stop();
  EXPECT_TRUE(service_.got().empty());
  options_.config.set_ca_file(files_.Write("authority.pem", authority.pem()));
  RunUntil(4);
  EXPECT_EQ(service_.got(), Once(0, 4));
}

}  // namespace
}  // namespace tacho::server::forward
