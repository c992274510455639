// OTLP over gRPC. Requests go as bytes, because generated messages would cost more than all else.
// All connections of the receiver are calls on one channel, which gRPC opens again if it breaks.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "grpcpp/impl/codegen/rpc_method.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/slice.h"
#include "server/forward/otlp_answer.h"
#include "server/forward/otlp_request.h"
#include "server/forward/receiver_config.h"
#include "server/forward/sender.h"

namespace tacho::server::forward {
namespace {

namespace service = opentelemetry::proto::collector::metrics::v1;

constexpr char kExport[] = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
// A receiver that is back is found within this time, whatever gRPC's own pauses have grown to.
constexpr int kFirstConnectPauseMs = 200;
constexpr int kLastConnectPauseMs = 5'000;
constexpr int kConnectMs = 10'000;
// A receiver that went away without a word is noticed after at most this and the next.
constexpr int kPingMs = 30'000;
constexpr int kPingAnswerMs = 10'000;
constexpr unsigned kAuthoritiesRoundSeconds = 60;  // How often a file with authorities is read.

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const config::v1::Forward& config) {
  if (absl::StartsWith(config.url(), "http://")) return grpc::InsecureChannelCredentials();
  if (config.ca_file().empty()) return grpc::SslCredentials({});
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          config.ca_file(), kAuthoritiesRoundSeconds));
  options.watch_root_certs();
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> ChannelTo(const SenderOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix(absl::StrCat("tacho-collector/", options.version));
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstConnectPauseMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLastConnectPauseMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
  // Tries are for the receiver's thread to decide, and a look at DNS for a configuration costs.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(std::string(AuthorityOf(options.config.url())),
                                   CredentialsOf(options.config), arguments);
}

class OtlpSender final : public Sender {
 public:
  explicit OtlpSender(SenderOptions options)
      : options_(std::move(options)), channel_(ChannelTo(options_)) {}

  Answer Send(const WriteBatch& batch, int /*number*/, PackedBatch* packed) override {
    if (packed->bytes.empty()) packed->bytes = EncodeOtlp(batch);
    grpc::ClientContext context;
    if (const absl::Status status = Prepare(&context); !status.ok()) {
      return {.why = std::string(status.message())};
    }
    // A copy, because gRPC may hold the bytes for a while after a call that has timed out.
    const grpc::Slice slice(packed->bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer answered;
    const grpc::internal::RpcMethod method(kExport, grpc::internal::RpcMethod::NORMAL_RPC);
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
            channel_.get(), method, &context, request, &answered);
    const service::ExportMetricsPartialSuccess partial_success = PartialSuccessOf(&answered);
    Answer answer;
    answer.verdict = JudgeOtlp(status, partial_success, batch.samples());
    answer.code = NameOfCode(status.error_code());
    answer.why = status.ok() ? partial_success.error_message() : status.error_message();
    answer.bytes = packed->bytes.size();
    return answer;
  }

 private:
  absl::Status Prepare(grpc::ClientContext* context) const {
    const config::v1::Forward& config = options_.config;
    const auto authorization = AuthorizationOf(config);
    if (!authorization.ok()) return authorization.status();
    context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Nanoseconds(config.timeout())));
    if (config.compression() == "gzip") context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    for (const auto& [name, value] : config.headers()) {
      context->AddMetadata(absl::AsciiStrToLower(name), value);
    }
    if (!authorization->empty()) context->AddMetadata("authorization", *authorization);
    return absl::OkStatus();
  }

  static service::ExportMetricsPartialSuccess PartialSuccessOf(grpc::ByteBuffer* answered) {
    grpc::Slice bytes;
    service::ExportMetricsServiceResponse response;
    if (!answered->Valid() || !answered->DumpToSingleSlice(&bytes).ok()) return {};
    if (!response.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size()))) return {};
    return response.partial_success();
  }

  const SenderOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

std::unique_ptr<Sender> NewOtlpSender(SenderOptions options) {
  return std::make_unique<OtlpSender>(std::move(options));
}

}  // namespace tacho::server::forward
