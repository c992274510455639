#include "server/security/security.h"

#include <pthread.h>

#include <utility>

#include "proto/base/status_macros.h"
#include "server/security/grpc_tls.h"

namespace tacho::server::security {

Security::Security(SecurityOptions options)
    : options_(std::move(options)),
      refusals_(options_.log, options_.registry),
      metrics_(options_.registry) {}

Security::~Security() { StopWatching(); }

absl::StatusOr<std::unique_ptr<Security>> Security::Create(const config::v1::Collector& config,
                                                           SecurityOptions options) {
  TACHO_RETURN_IF_ERROR(CheckListen(config));
  std::unique_ptr<Security> security(new Security(std::move(options)));
  AccessControlOptions access;
  access.now = security->options_.now;
  access.on_refusal = [log = &security->refusals_](const absl::Status& status,
                                                   absl::string_view peer) {
    log->Refused(status, peer);
  };
  TACHO_ASSIGN_OR_RETURN(auto control, AccessControl::Create(config.auth(), std::move(access)));
  TACHO_ASSIGN_OR_RETURN(auto tls, TlsSource::Create(config, security->options_.now));

  security->policy_ = std::make_unique<ListenPolicy>(config);
  security->access_ = std::move(control);
  security->tls_ = std::move(tls);
  security->grpc_credentials_ = security->tls_ == nullptr
                                    ? grpc::InsecureServerCredentials()
                                    : GrpcTlsCredentials(security->tls_.get());
  if (security->tls_ != nullptr) security->metrics_.Show(*security->tls_);
  return security;
}

std::vector<process::Reloadable*> Security::reloadables() {
  std::vector<process::Reloadable*> parts = {policy_.get(), access_.get()};
  if (tls_ != nullptr) parts.push_back(tls_.get());
  return parts;
}

void Security::Watch(std::function<void()> recheck) {
  thread_ = std::thread([this, recheck = std::move(recheck)] { Run(recheck); });
}

void Security::StopWatching() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Security::Run(const std::function<void()>& recheck) {
  pthread_setname_np(pthread_self(), "security");
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.round)) return;
    }
    if (tls_ != nullptr) {
      const std::string news = tls_->Poll();
      if (!news.empty()) options_.log.Info(news, {{"part", "security"}});
      metrics_.Show(*tls_);
    }
    recheck();
  }
}

}  // namespace tacho::server::security
