// OpenTelemetry over gRPC as plain clients see it, of a whole collector: what is compressed, what
// is large, and who may send.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "interop/otlp_logs_service.grpc.pb.h"
#include "interop/otlp_metrics_service.grpc.pb.h"
#include "proto/config/yaml_config.h"
#include "rocksdb/env.h"
#include "server/collector.h"
#include "server/security/tokens.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/support/certificates.h"
#include "tests/support/patient_context.h"

// The header grpc-accept-encoding, which gRPC keeps to itself. In no installed header.
uint32_t grpc_call_test_only_get_encodings_accepted_by_peer(grpc_call* call);

namespace tacho::server {
namespace {

using grpc::StatusCode;
using opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest;
using opentelemetry::proto::collector::logs::v1::ExportLogsServiceResponse;
using opentelemetry::proto::collector::logs::v1::LogsService;
using opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceRequest;
using opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;
using opentelemetry::proto::collector::metrics::v1::MetricsService;
using testing::HasSubstr;

constexpr char kExport[] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
constexpr char kToken[] = "token-of-writer-0123456789";

class OtlpGrpcTest : public testing::Test {
 protected:
  OtlpGrpcTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    EXPECT_TRUE(config::ParseYaml("listen: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\n"
                                  "storage: {path: /data, retention: 0s}\n"
                                  "interop: {max_request_bytes: 1MiB}\n"
                                  "admin: {listen: 'off'}\n",
                                  "test", &config_)
                    .ok());
  }

  void Start() {
    CollectorWorld world;
    world.env = env_.get();
    auto collector = Collector::Start(config_, std::move(world));
    ASSERT_TRUE(collector.ok()) << collector.status();
    collector_ = *std::move(collector);
  }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(collector_->grpc_port()),
                                     grpc::InsecureChannelCredentials(), own);
  }

  static ExportMetricsServiceRequest Points(int points) {
    ExportMetricsServiceRequest request;
    auto* const resource = request.add_resource_metrics();
    for (const auto& [name, value] : {std::pair("service.name", "vision"), {"host.name", "h1"}}) {
      auto* const attribute = resource->mutable_resource()->add_attributes();
      attribute->set_key(name);
      attribute->mutable_value()->set_string_value(value);
    }
    auto* const metric = resource->add_scope_metrics()->add_metrics();
    metric->set_name("loss");
    for (int i = 0; i < points; ++i) {
      auto* const point = metric->mutable_gauge()->add_data_points();
      point->set_time_unix_nano(static_cast<uint64_t>(absl::ToUnixNanos(now_)) + i);
      point->set_as_double(0.5 * i);
    }
    return request;
  }
  // Makes it large with what nobody asks for.
  static void Pad(ExportMetricsServiceRequest* request, size_t bytes) {
    auto* const attribute =
        request->mutable_resource_metrics(0)->mutable_resource()->add_attributes();
    attribute->set_key("padding");
    attribute->mutable_value()->set_string_value(std::string(bytes, ' '));
  }
  grpc::Status Export(const std::shared_ptr<grpc::Channel>& channel,
                      const ExportMetricsServiceRequest& request, bool gzip = false,
                      const std::string& token = "") {
    PatientContext context;
    if (gzip) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    response_.Clear();
    const grpc::Status status =
        MetricsService::NewStub(channel)->Export(&context, request, &response_);
    encodings_ = grpc_call_test_only_get_encodings_accepted_by_peer(context.c_call());
    return status;
  }
  // Sends bytes, whatever the method's request is.
  grpc::Status CallBytes(const char* method, char byte, bool gzip) const {
    grpc::GenericStub stub(Connect());
    PatientContext context;
    if (gzip) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    grpc::CompletionQueue queue;
    const grpc::Slice slice(std::string(10'000, byte));
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }
  int StoredPoints() {
    v1::RangeRequest request;
    request.mutable_selector()->set_job("vision");
    request.mutable_selector()->add_metrics("loss");
    PatientContext context;
    const auto stream = v1::Query::NewStub(Connect())->Range(&context, request);
    int points = 0;
    for (v1::RangeResponse part; stream->Read(&part);) points += part.points().times_unix_ns_size();
    return points;
  }

  static inline const absl::Time now_ = absl::Now();
  TestFiles files_;
  const std::unique_ptr<rocksdb::Env> env_;
  config::v1::Collector config_;
  std::unique_ptr<Collector> collector_;
  ExportMetricsServiceResponse response_;
  uint32_t encodings_ = 0;
};

TEST_F(OtlpGrpcTest, GzipIsUnpackedAndAnnounced) {
  Start();
  const auto status = Export(Connect(), Points(5'000), true);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(response_.has_partial_success()) << response_.DebugString();
  EXPECT_EQ(StoredPoints(), 5'000);
  EXPECT_EQ(encodings_, 1u << GRPC_COMPRESS_NONE | 1u << GRPC_COMPRESS_GZIP);
}

TEST_F(OtlpGrpcTest, GzipLogsAreUnpacked) {
  Start();
  ExportLogsServiceRequest request;
  auto* const logs = request.add_resource_logs()->add_scope_logs();
  for (int i = 0; i < 1'000; ++i) logs->add_log_records()->set_event_name("nobody's");
  PatientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  ExportLogsServiceResponse response;
  const auto status = LogsService::NewStub(Connect())->Export(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.partial_success().rejected_log_records(), 1'000);
}

TEST_F(OtlpGrpcTest, ABombIsRefusedBeforeItIsUnpacked) {
  Start();
  auto request = Points(1);
  Pad(&request, 200 << 20);
  const auto status = Export(Connect(), request, true);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("interop.max_request_bytes"));
  EXPECT_EQ(StoredPoints(), 0);
}

TEST_F(OtlpGrpcTest, OtherEncodingsAreRefused) {
  Start();
  PatientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_DEFLATE);
  const auto status =
      MetricsService::NewStub(Connect())->Export(&context, Points(1'000), &response_);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("deflate"));
  EXPECT_EQ(StoredPoints(), 0);
}

TEST_F(OtlpGrpcTest, OtherServicesRefuseGzip) {
  Start();
  for (const char* method : {"/tacho.v1.Query/GetJob", "/tacho.v1.Query/Range",
                             "/tacho.v1.Nothing/Nothing", "/grpc.health.v1.Health/Check",
                             "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const auto status = CallBytes(method, ' ', true);
    EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("without compression")) << method;
  }
  PatientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const auto stub = v1::Ingest::NewStub(Connect());
  const auto stream = stub->Stream(&context);
  auto hello = ingest::HelloMessage();
  hello.mutable_hello()->set_agent_id(std::string(500, 'v'));
  stream->Write(hello);
  v1::ServerMessage answer;
  EXPECT_FALSE(stream->Read(&answer)) << answer.DebugString();
  const auto status = stream->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("without compression"));
}

TEST_F(OtlpGrpcTest, BytesThatAreNoRequestAreMalformed) {
  Start();
  for (const bool gzip : {false, true}) {
    const auto status = CallBytes(kExport, '\xff', gzip);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("ExportMetricsServiceRequest"));
  }
}

// The door sees a call with its headers, before its message is whole.
TEST_F(OtlpGrpcTest, TheFirstRequestOfAConnectionMayBeLarge) {
  Start();
  auto request = Points(1);
  Pad(&request, 3 << 20);
  for (int i = 0; i < 5; ++i) {
    const auto status = Export(Connect(), request);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(StoredPoints(), 1);
}

TEST_F(OtlpGrpcTest, AStrangerIsRefusedWhateverHeSends) {
  const std::string entry = absl::StrCat(
      "tokens:\n  - {name: writer, sha256: ", absl::BytesToHexString(security::Sha256(kToken)),
      ", roles: [write], jobs: '.*'}\n");
  config_.mutable_auth()->set_tokens_file(files_.Write("tokens.yaml", entry));
  Start();
  auto request = Points(1);
  EXPECT_TRUE(Export(Connect(), request, true, kToken).ok());
  Pad(&request, 3 << 20);
  EXPECT_TRUE(Export(Connect(), request, false, kToken).ok());
  for (const bool gzip : {false, true}) {
    for (const char* token : {"", "stranger"}) {
      EXPECT_EQ(Export(Connect(), request, gzip, token).error_code(), StatusCode::UNAUTHENTICATED);
    }
  }
}

}  // namespace
}  // namespace tacho::server
