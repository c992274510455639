// The collector's security as one part: access control, TLS, and the watch over both.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "proto/base/background_thread.h"
#include "proto/base/log.h"
#include "server/process/reloadable.h"
#include "server/security/access_control.h"
#include "server/security/listen_policy.h"
#include "server/security/tls_source.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

// The credentials of gRPC's port with the material of a TlsSource: each new connection asks for the
// newest. Not grpc::experimental's providers: they read the files themselves, one by one and
// without our checks, so that a reload could not be all or nothing. `source` is not owned; it and
// what is returned must outlive the server.
std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsSource* source);

struct SecurityOptions {
  std::function<absl::Time()> now = absl::Now;
  log::Log log;
  prometheus::Registry* registry = nullptr;  // Not owned; must outlive this.
  // How often files and callers are looked at: what has expired ends within it.
  absl::Duration round = absl::Seconds(5);
};

// Thread-safe but for Watch() and StopWatching(). To outlive everything that it is given to.
class Security {
 public:
  //   as CheckSecurity().
  static absl::StatusOr<std::unique_ptr<Security>> Create(const config::v1::Collector& config,
                                                          SecurityOptions options);

  const AccessControl* access() const { return access_.get(); }
  // Null: no TLS.
  const TlsSource* tls() const { return tls_.get(); }
  // The credentials of the gRPC port, with TLS or without.
  std::shared_ptr<grpc::ServerCredentials> grpc_credentials() const { return grpc_credentials_; }

  std::vector<process::Reloadable*> reloadables();

  // From now on, every round, reads the certificate's files again and calls `recheck`, which ends
  // the calls that are no longer allowed. Once.
  void Watch(std::function<void()> recheck);
  // No `recheck` is called after this.
  void StopWatching() { thread_.Stop(); }

 private:
  explicit Security(SecurityOptions options);
  // Counts and logs that a peer was not let in. `why` has no secret in it.
  void CountRefusal(const absl::Status& why, absl::string_view peer) const;
  void ShowTls() const;

  const SecurityOptions options_;
  prometheus::Counter* unauthenticated_ = nullptr;  // Null: nothing is counted.
  prometheus::Counter* not_allowed_ = nullptr;
  std::unique_ptr<ListenPolicy> policy_;
  std::unique_ptr<AccessControl> access_;
  std::unique_ptr<TlsSource> tls_;
  std::shared_ptr<grpc::ServerCredentials> grpc_credentials_;
  RepeatingThread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::security
