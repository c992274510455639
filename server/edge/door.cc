#include "server/edge/door.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_interceptor.h"
#include "proto/base/clock.h"
#include "server/process/grpc_transport.h"
#include "tacho/v1/member_writes.pb.h"

namespace tacho::server::edge {
namespace {

// The bytes of a request as gRPC's server has it.
using RequestBytes = size_t (*)(const void* request);

template <typename Message>
size_t MessageBytes(const void* request) {
  return static_cast<const Message*>(request)->ByteSizeLong();
}

// For a method of which the requests may be as large as the messages of agents; else null.
RequestBytes LargeRequestsOf(absl::string_view method) {
  if (absl::ConsumePrefix(&method, "/tacho.v1.MemberWrites/")) {
    if (method == "StoreSeries") return MessageBytes<v1::StoreSeriesRequest>;
    if (method == "StoreEvents") return MessageBytes<v1::StoreEventsRequest>;
    return method == "Push" ? MessageBytes<v1::PushRequest> : nullptr;
  }
  const bool large =
      absl::ConsumePrefix(&method, "/opentelemetry.proto.collector.") &&
      (method == "metrics.v1.MetricsService/Export" || method == "logs.v1.LogsService/Export");
  if (!large) return nullptr;
  // interop/otlp_calls.h
  return
      [](const void* request) { return static_cast<const grpc::ByteBuffer*>(request)->Length(); };
}

// Sees how a call ends. One that is refused for want of room is answered too: a client with many
// watches opens them all at once, and means no flood. A large request is useful once it is
// answered, and not before: its sender was admitted then.
class AnswerCounter final : public grpc::experimental::Interceptor {
 public:
  AnswerCounter(ConnectionTable* connections, std::shared_ptr<ConnectionUse> use,
                const grpc::ServerContextBase* context, RequestBytes large)
      : connections_(connections), use_(std::move(use)), context_(context), large_(large) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (large_ != nullptr &&
        methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      const void* const request = methods->GetRecvMessage();
      request_bytes_ = request == nullptr ? 0 : large_(request);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) &&
        !context_->IsCancelled()) {
      const grpc::StatusCode code = methods->GetSendStatus().error_code();
      if (code == grpc::StatusCode::OK || code == grpc::StatusCode::UNAVAILABLE) {
        connections_->CountAnswer(use_.get());
        if (large_ != nullptr) CountRequest(code == grpc::StatusCode::OK);
      }
    }
    methods->Proceed();
  }

 private:
  void CountRequest(bool stored) {
    use_->messages.fetch_add(1, std::memory_order_relaxed);
    use_->message_bytes.fetch_add(request_bytes_, std::memory_order_relaxed);
    if (stored) use_->welcomed.store(true, std::memory_order_relaxed);
  }

  ConnectionTable* const connections_;
  const std::shared_ptr<ConnectionUse> use_;
  const grpc::ServerContextBase* const context_;
  const RequestBytes large_;  // Null: they are not.
  size_t request_bytes_ = 0;
};

// Sees every call as it begins, known method or not. Streams of agents are not intercepted: they
// are few, and each of their messages would cost.
class CallCounter final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallCounter(ConnectionTable* connections) : connections_(connections) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    const std::string peer = info->server_context()->peer();
    const bool streams = absl::StartsWith(info->method(), "/tacho.v1.Ingest/");
    const RequestBytes large = LargeRequestsOf(info->method());
    const bool writes = streams || large != nullptr;
    connections_->CountStart(
        peer, writes ? ConnectionTable::Caller::kWriter : ConnectionTable::Caller::kReader,
        MonotonicNow());
    if (streams) return nullptr;
    auto use = connections_->Find(peer);
    if (use == nullptr) return nullptr;
    return new AnswerCounter(connections_, std::move(use), info->server_context(), large);
  }

 private:
  ConnectionTable* const connections_;
};

ConnectionTable::Limits LimitsOf(const config::v1::Collector& config) {
  const auto& quotas = config.quotas();
  const uint64_t most = ConnectionsWithin(FileLimit());
  ConnectionTable::Limits limits;
  limits.max_connections =
      quotas.max_connections() == 0 ? most : std::min<uint64_t>(quotas.max_connections(), most);
  limits.max_per_address = quotas.max_connections_per_address() == 0
                               ? std::max<uint64_t>(1, limits.max_connections / 2)
                               : quotas.max_connections_per_address();
  limits.starts_per_second = quotas.stream_starts_per_second();
  limits.max_message_bytes = config.ingest().max_message_bytes();
  limits.max_read_bytes = process::LargestRead(limits.max_message_bytes);
  limits.patience = absl::Nanoseconds(quotas.hello_timeout());
  return limits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Door>> Door::Open(DoorOptions options) {
  const std::string& address = options.config.listen().grpc();
  auto listener = Listener::Bind(address);
  if (!listener.ok()) {
    return absl::UnavailableError(absl::StrCat("listen.grpc: cannot listen on ", address, ": ",
                                               listener.status().message(),
                                               "; is another process using the port?"));
  }
  std::unique_ptr<Door> door(new Door(std::move(options), *std::move(listener)));
  const ConnectionTable::Limits limits = LimitsOf(door->options_.config);
  if (door->options_.log) {
    door->options_.log(absl::StrCat("at most ", limits.max_connections, " connections, ",
                                    limits.max_per_address, " per address; at most ", FileLimit(),
                                    " open files"));
  }
  return door;
}

Door::Door(DoorOptions options, std::unique_ptr<Listener> listener)
    : options_(std::move(options)),
      connections_({.limits = LimitsOf(options_.config),
                    .registry = options_.registry,
                    .memory_short = options_.memory_short,
                    .log = options_.log,
                    .answer_refused = options_.config.listen().tls().certificate().empty()}),
      listener_(std::move(listener)) {}

void Door::Attach(grpc::ServerBuilder* builder,
                  std::shared_ptr<grpc::ServerCredentials> credentials, Interceptors interceptors) {
  using Experimental = grpc::ServerBuilder::experimental_type;
  acceptor_ = builder->experimental().AddExternalConnectionAcceptor(
      Experimental::ExternalConnectionType::FROM_FD, std::move(credentials));
  interceptors.push_back(std::make_unique<CallCounter>(&connections_));
  builder->experimental().SetInterceptorCreators(std::move(interceptors));
}

void Door::Serve() {
  listener_->Serve(&connections_, [this](int fd, const PeerAddress&) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    acceptor_->HandleNewConnection(&connection);
  });
}

absl::StatusOr<std::function<void()>> Door::Prepare(const config::v1::Collector& config) {
  return [this, limits = LimitsOf(config)] { connections_.SetLimits(limits); };
}

}  // namespace tacho::server::edge
