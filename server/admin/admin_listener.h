// Where tacho.v1.Admin is served: a Unix socket for its owner alone, or a loopback port.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"

namespace tacho::server::admin {

// The value of admin.listen, read.
struct AdminAddress {
  std::string socket;     // Path of a Unix socket; or empty, and
  std::string host_port;  // a loopback address.
};
// `text` is "unix:PATH", where a relative path is one below `base`, or HOST:PORT.
//   INVALID_ARGUMENT  it is neither, the path is too long for a socket, or the host is not this
//                     machine alone.
absl::StatusOr<AdminAddress> ParseAdminAddress(absl::string_view text, absl::string_view base);

// Serves one service there. Start(), Stop() and destruction are for one thread.
class AdminListener {
 public:
  // `service` is not owned. The socket has mode 0600 from its first moment on. A socket that a
  // killed process left behind is replaced.
  //   UNAVAILABLE  the address cannot be listened on, or another process serves it.
  static absl::StatusOr<std::unique_ptr<AdminListener>> Start(const AdminAddress& address,
                                                              grpc::Service* service);
  ~AdminListener();  // Stops.

  int port() const { return port_; }  // 0 for a socket.

  // Takes no new calls, gives running calls up to `grace`, and removes the socket.
  void Stop(absl::Duration grace);

 private:
  AdminListener() = default;

  absl::Status StartOnSocket(const std::string& path, grpc::Service* service);
  absl::Status StartOnPort(const std::string& address, grpc::Service* service);

  std::unique_ptr<grpc::Server> server_;
  std::string socket_;
  int port_ = 0;
};

}  // namespace tacho::server::admin
