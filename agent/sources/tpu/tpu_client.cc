#include "agent/sources/tpu/tpu_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/tpu_metric_service.grpc.pb.h"

namespace tacho::agent {
namespace {

namespace proto = ::tpu::monitoring::runtime;

// Within this time the agent finds a libtpu that has started; gRPC alone would take two minutes.
constexpr int kReconnectMs = 2000;
// Hundreds of metrics, each with a distribution of every kind, are less.
constexpr int kMaxAnswerBytes = 4 * 1024 * 1024;

absl::Status StatusOf(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(status.error_code()),
          absl::StrCat("libtpu at ", address, ": ", status.error_message())};
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct TpuClient::Stub {
  explicit Stub(const std::string& address)
      : service(proto::RuntimeMetricService::NewStub(ChannelTo(address))) {}
  const std::unique_ptr<proto::RuntimeMetricService::Stub> service;
};

TpuClient::TpuClient(std::string address, absl::Duration timeout)
    : address_(std::move(address)), timeout_(timeout), stub_(std::make_unique<Stub>(address_)) {}

TpuClient::~TpuClient() = default;

absl::Status TpuClient::List(const std::vector<std::string>& wanted) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  proto::ListSupportedMetricsResponse response;
  const grpc::Status status = stub_->service->ListSupportedMetrics(&context, {}, &response);
  supported_.clear();
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    supported_ = wanted;  // It is too old to list them, so each is tried.
    return absl::OkStatus();
  }
  if (!status.ok()) return StatusOf(status, address_);
  std::set<std::string> listed;
  for (const auto& metric : response.supported_metric()) listed.insert(metric.metric_name());
  for (const std::string& name : wanted) {
    if (listed.contains(name)) supported_.push_back(name);
  }
  return absl::OkStatus();
}

TpuAnswer TpuClient::Ask(absl::Time now, const std::vector<std::string>& wanted) {
  TpuAnswer answer;
  const absl::Duration since = now - listed_;
  if (since < absl::ZeroDuration() || since >= kListAgain) {
    answer.status = List(wanted);
    if (!answer.status.ok()) return answer;
    listed_ = now;
  }
  std::vector<std::string> absent;
  for (const std::string& name : supported_) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    proto::MetricRequest request;
    request.set_metric_name(name);
    // The agent adds up the processes itself; aggregated, each of them would report the whole
    // worker.
    request.set_skip_node_aggregation(true);
    proto::MetricResponse response;
    const grpc::Status status = stub_->service->GetRuntimeMetric(&context, request, &response);
    if (status.ok()) {
      answer.metrics[name] = DecodeTpuMetric(response.metric());
      continue;
    }
    if (status.error_code() == grpc::StatusCode::NOT_FOUND ||
        status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      absent.push_back(name);
      continue;
    }
    if (answer.status.ok()) answer.status = StatusOf(status, address_);
    // Another process may listen here next, and support something else.
    listed_ = absl::InfinitePast();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      break;
    }
  }
  std::erase_if(supported_, [&](const std::string& name) {
    return std::find(absent.begin(), absent.end(), name) != absent.end();
  });
  return answer;
}

absl::Status TpuClient::CoreStates(bool hlo, proto::GetTpuRuntimeStatusResponse* states) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  proto::GetTpuRuntimeStatusRequest request;
  request.set_include_hlo_info(hlo);
  return StatusOf(stub_->service->GetTpuRuntimeStatus(&context, request, states), address_);
}

}  // namespace tacho::agent
