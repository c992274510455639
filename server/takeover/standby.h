// A collector of a cluster with spares, while it owns no shard: the way to the bucket, and an HTTP
// port that says so. There is no gRPC port then: agents and clients try another address at once.
#pragma once

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"
#include "server/cluster/membership.h"
#include "server/http/http_server.h"
#include "server/security/security.h"
#include "server/takeover/ownership.h"
#include "storage/bucket/bucket.h"
#include "storage/bucket/bucket_options.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::takeover {

// For one thread, but ownership().
class Standby {
 public:
  // Starts the ownership; asks nothing of the bucket before that. `on_change` as
  // OwnershipOptions::on_change.
  //   INVALID_ARGUMENT  `bucket` names none, or a key of it is wrong; or as Security::Create().
  static absl::StatusOr<std::unique_ptr<Standby>> Open(const config::v1::Collector& config,
                                                       const cluster::Self& self,
                                                       absl::string_view version, log::Log log,
                                                       std::function<void()> on_change);

  Ownership* ownership() { return ownership_.get(); }

  // Is told of each request that the ownership makes of the bucket, from now on; null: nobody is.
  // Once this has returned, the one before is not called any more.
  void SetRequestListener(std::function<void(const storage::FinishedRequest&)> listener)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the HTTP port of `listen.http`: /healthz answers 200, /readyz 503.
  //   as http::HttpServer::Start().
  absl::Status Serve();
  // Closes it, so that the collector can have it.
  void StopServing();

 private:
  explicit Standby(const config::v1::Collector& config) : config_(config) {}

  const config::v1::Collector config_;
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<security::Security> security_;
  std::unique_ptr<storage::Bucket> bucket_;
  std::unique_ptr<Ownership> ownership_;
  std::unique_ptr<http::HttpServer> http_;
  absl::Mutex mutex_;
  std::function<void(const storage::FinishedRequest&)> listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::takeover
