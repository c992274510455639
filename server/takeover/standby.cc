#include "server/takeover/standby.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/base/status_macros.h"
#include "server/history/bucket_config.h"
#include "storage/bucket/bucket_options.h"

namespace tacho::server::takeover {
namespace {

constexpr char kIndex[] =
    "tacho-collector\n\n"
    "This collector of a cluster waits until a shard has no owner. It takes no rows and answers no "
    "queries meanwhile.\n";

}  // namespace

absl::StatusOr<std::unique_ptr<Standby>> Standby::Open(const config::v1::Collector& config,
                                                       const cluster::Self& self,
                                                       absl::string_view version, log::Log log,
                                                       std::function<void()> on_change) {
  std::unique_ptr<Standby> standby(new Standby(config));
  standby->registry_ = std::make_unique<prometheus::Registry>();
  security::SecurityOptions security;
  security.log = log;
  security.registry = standby->registry_.get();
  TACHO_ASSIGN_OR_RETURN(standby->security_,
                         security::Security::Create(config, std::move(security)));
  if (config.bucket().url().empty()) {
    return absl::InvalidArgumentError(
        "cluster.spares needs a bucket, from which a spare takes over: set bucket.url");
  }
  storage::BucketOptions way = history::BucketOptionsOf(config.bucket());
  way.on_request = [self = standby.get()](const storage::FinishedRequest& request) {
    absl::MutexLock lock(&self->mutex_);
    if (self->listener_) self->listener_(request);
  };
  auto bucket = storage::OpenBucket(std::move(way));
  if (!bucket.ok()) {
    return absl::Status(bucket.status().code(),
                        absl::StrCat("bucket: ", bucket.status().message()));
  }
  standby->bucket_ = *std::move(bucket);
  OwnershipOptions options;
  options.bucket = standby->bucket_.get();
  options.address = self.address;
  options.home = self.home;
  const auto& cluster = config.cluster();
  options.members.assign(cluster.members().begin(), cluster.members().end());
  options.shards = static_cast<uint32_t>(options.members.size());
  options.members.insert(options.members.end(), cluster.spares().begin(), cluster.spares().end());
  options.takeover_after = absl::Nanoseconds(cluster.takeover_after());
  options.version = std::string(version);
  options.on_change = std::move(on_change);
  options.log = std::move(log);
  standby->ownership_ = std::make_unique<Ownership>(std::move(options));
  standby->ownership_->Start();
  return standby;
}

absl::Status Standby::Serve() {
  http::HttpServerOptions options;
  options.address = config_.listen().http();
  if (config_.listen().tls().http()) options.tls = security_->tls();
  options.hosts.assign(config_.listen().http_hosts().begin(), config_.listen().http_hosts().end());
  options.routes = {
      {"/", [](const http::HttpRequest&) { return http::HttpResponse{.body = kIndex}; }},
      {"/healthz", [](const http::HttpRequest&) { return http::HttpResponse{.body = "alive\n"}; }},
      {"/readyz",
       [](const http::HttpRequest&) {
         return http::HttpResponse{.status = 503, .body = "standby: no shard needs an owner\n"};
       }},
  };
  auto http = http::HttpServer::Start(std::move(options));
  if (!http.ok()) {
    return absl::Status(http.status().code(),
                        absl::StrCat("listen.http: ", http.status().message()));
  }
  http_ = *std::move(http);
  return absl::OkStatus();
}

void Standby::SetRequestListener(std::function<void(const storage::FinishedRequest&)> listener) {
  absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void Standby::StopServing() {
  if (http_ == nullptr) return;
  http_->Stop();
  http_.reset();
}

}  // namespace tacho::server::takeover
