// The collector's security as one part: what is let in, TLS, and the watch over both.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"
#include "server/process/reloadable.h"
#include "server/security/access_control.h"
#include "server/security/listen_policy.h"
#include "server/security/refusal_log.h"
#include "server/security/tls_metrics.h"
#include "server/security/tls_source.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::security {

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
  ~Security();

  const AccessControl* access() const { return access_.get(); }
  // Null: no TLS.
  const TlsSource* tls() const { return tls_.get(); }
  // Of the gRPC port, with TLS or without.
  std::shared_ptr<grpc::ServerCredentials> grpc_credentials() const { return grpc_credentials_; }

  std::vector<process::Reloadable*> reloadables();

  // From now on, every round, reads the certificate's files again and calls `recheck`, which ends
  // what may not go on. Once.
  void Watch(std::function<void()> recheck);
  // No `recheck` is called after this.
  void StopWatching() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Security(SecurityOptions options);
  void Run(const std::function<void()>& recheck) ABSL_LOCKS_EXCLUDED(mutex_);

  const SecurityOptions options_;
  RefusalLog refusals_;
  TlsMetrics metrics_;
  std::unique_ptr<ListenPolicy> policy_;
  std::unique_ptr<AccessControl> access_;
  std::unique_ptr<TlsSource> tls_;
  std::shared_ptr<grpc::ServerCredentials> grpc_credentials_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::security
