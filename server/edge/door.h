// The entrance of the gRPC server: a listener, the table of connections and a count of calls, set
// up from the configuration's quotas.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "prometheus/registry.h"
#include "server/edge/connection_table.h"
#include "server/edge/listener.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::edge {

struct DoorOptions {
  config::v1::Collector config;
  prometheus::Registry* registry = nullptr;    // Not owned.
  std::function<bool()> memory_short;          // As ConnectionTable::Options.
  std::function<void(absl::string_view)> log;  // May be null.
};

// Open() -> Attach() -> the server starts -> Serve() -> Stop() -> the server ends. All of these are
// for one thread.
class Door final : public process::Reloadable {
 public:
  // Binds config.listen.grpc.
  //   UNAVAILABLE  it is unknown or taken; the text says which key and address.
  static absl::StatusOr<std::unique_ptr<Door>> Open(DoorOptions options);

  int port() const { return listener_->port(); }
  ConnectionTable* connections() { return &connections_; }

  using Interceptors =
      std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>;
  // The server that `builder` makes takes its connections from here. The builder keeps one list of
  // interceptors, so the server's others are to be given here.
  void Attach(grpc::ServerBuilder* builder, std::shared_ptr<grpc::ServerCredentials> credentials,
              Interceptors interceptors = {});
  void Serve();
  void Stop() { listener_->Stop(); }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  Door(DoorOptions options, std::unique_ptr<Listener> listener);

  const DoorOptions options_;
  ConnectionTable connections_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<Listener> listener_;  // Last: its thread uses the others.
};

}  // namespace tacho::server::edge
