// The query services over HTTP: each request becomes a call of the gRPC server of this process, so
// that roles, limits, counts and errors are the same at both ports. Messages pass through as bytes.
#pragma once

#include <memory>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/http/http_message.h"
#include "server/http/http_router.h"
#include "server/http/responder.h"

namespace tacho::server::bridge {

// Thread-safe.
class ConnectBridge {
 public:
  // The longest request: a name, a pattern and some matchers need far less.
  static constexpr size_t kMaxRequestBytes = size_t{256} << 10;

  // `channel` leads to a server of this process: grpc::Server::InProcessChannel() without a limit
  // on the size of messages.
  explicit ConnectBridge(std::shared_ptr<grpc::Channel> channel);
  // Waits for the calls that run. They end when the server is shut down or their clients go, so do
  // one of these first.
  ~ConnectBridge();

  // Returns at once; the answer comes when the call has one. A client that goes cancels the call,
  // and one that reads slowly slows it down. Calls that still run when the server ends get its
  // status.
  void Handle(http::HttpRequest request, http::ResponderPtr responder);

  // Its routes, one for each service. The bridge is not owned by them and must outlive the server.
  std::vector<http::Route> Routes();

 private:
  class LiveCalls;
  class Call;

  grpc::GenericStub stub_;
  const std::shared_ptr<LiveCalls> live_;
};

}  // namespace tacho::server::bridge
