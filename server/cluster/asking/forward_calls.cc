#include "server/cluster/asking/forward_calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/metrics/metric_families.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::cluster {
namespace {

constexpr char kOnce[] = "1";

prometheus::Counter& CounterOf(const ForwardOptions& options, const char* result) {
  if (options.writes) {
    return metrics::NewCounter(options.registry, "tacho_writes_forwarded_total",
                               {{"result", result}});
  }
  return metrics::NewCounter(options.registry, "tacho_queries_forwarded_total",
                             {{"result", result}});
}

// The value of kForwardedMetadata; empty: the caller is no member.
std::string PassedOn(const grpc::CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kForwardedMetadata);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace

ForwardCalls::ForwardCalls(ForwardOptions options)
    : options_(std::move(options)),
      answered_(CounterOf(options_, "ok")),
      refused_(CounterOf(options_, "refused")),
      unreachable_(CounterOf(options_, "unreachable")) {}

ForwardCalls::~ForwardCalls() {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_ == 0; };
  mutex_.Await(absl::Condition(&none));
}

void ForwardCalls::Drain() {
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    contexts.assign(contexts_.begin(), contexts_.end());
  }
  for (const auto& context : contexts) context->TryCancel();
}

bool ForwardCalls::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

std::optional<uint32_t> ForwardCalls::OwnerElsewhere(const grpc::CallbackServerContext& context,
                                                     absl::string_view job) const {
  // A call that names no job is refused here, or is about what this collector says of itself.
  if (job.empty()) return std::nullopt;
  const uint32_t shard = membership().ShardOf(job);
  if (shard == membership().own()) return std::nullopt;
  const std::string passed_on = PassedOn(context);
  if (passed_on.empty() || (passed_on == kOnce && membership().moves())) return shard;
  return std::nullopt;
}

bool ForwardCalls::AsksAll(const grpc::CallbackServerContext& context) const {
  return membership().shards() > 1 && PassedOn(context).empty();
}

bool ForwardCalls::CanPass(const security::Credentials& shown) const {
  const security::AccessControl* const access = options_.access;
  return access == nullptr || !access->enabled() || !shown.token.empty();
}

absl::StatusOr<Asker> ForwardCalls::Admit(const grpc::CallbackServerContext& context) const {
  return Admit({security::CredentialsOf(context), context.deadline(), !PassedOn(context).empty()});
}

absl::StatusOr<Asker> ForwardCalls::Admit(Asker asker) const {
  if (draining()) return errors::Draining();
  const security::AccessControl* const access = options_.access;
  if (access == nullptr || !access->enabled()) return asker;
  if (const auto caller = access->Authenticate(asker.shown); !caller.ok()) return caller.status();
  if (CanPass(asker.shown)) return asker;
  // Another member would see this collector's certificate and take it for the caller's.
  return errors::ErrorOf(errors::Failure::kForbidden,
                         "other collectors of the cluster are to be asked for this, and a client "
                         "certificate cannot be passed on to them: use a token, or ask the "
                         "collector that keeps the job (tachoctl cluster)");
}

ForwardCalls::Call::Entry::Entry(ForwardCalls* calls) : calls_(calls) {
  absl::MutexLock lock(&calls_->mutex_);
  ++calls_->open_;
}

ForwardCalls::Call::Entry::~Entry() {
  absl::MutexLock lock(&calls_->mutex_);
  --calls_->open_;
}

ForwardCalls::Call::Call(ForwardCalls* calls, uint32_t shard, const Asker& asker)
    : entry_(calls),
      calls_(calls),
      shard_(shard),
      context_(std::make_shared<grpc::ClientContext>()) {
  context_->AddMetadata(kForwardedMetadata, asker.was_passed_on ? "2" : kOnce);
  if (asker.deadline != std::chrono::system_clock::time_point::max()) {
    context_->set_deadline(asker.deadline);
  }
  if (shard_ == calls_->membership().own()) {
    caller_ = security::BridgedCallers::OfProcess().Add(asker.shown);
    context_->AddMetadata(security::kBridgedCallerMetadata, caller_->handle());
  } else if (!asker.shown.token.empty()) {
    context_->AddMetadata("authorization", absl::StrCat("Bearer ", asker.shown.token));
  }
  absl::MutexLock lock(&calls_->mutex_);
  if (calls_->draining_) context_->TryCancel();  // Before its start: nothing is called out.
  calls_->contexts_.insert(context_);
}

ForwardCalls::Call::~Call() {
  absl::MutexLock lock(&calls_->mutex_);
  calls_->contexts_.erase(context_);
}

std::shared_ptr<grpc::Channel> ForwardCalls::Call::channel() const {
  const Membership& membership = calls_->membership();
  return shard_ == membership.own() ? calls_->own_ : membership.channel(shard_);
}

grpc::Status ForwardCalls::Call::Ended(const grpc::Status& status) {
  if (status.ok()) {
    calls_->answered_.Increment();
    return status;
  }
  if (status.error_code() == grpc::StatusCode::CANCELLED && calls_->draining()) {
    return errors::ToGrpcStatus(errors::Draining(), calls_->NextSpread());
  }
  // A collector says with details how long to wait. Without them it is gRPC that has no connection.
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE || !status.error_details().empty()) {
    calls_->refused_.Increment();
    return status;
  }
  calls_->unreachable_.Increment();
  const std::string text =
      absl::StrCat("member ", calls_->membership().NameOf(shard_),
                   " cannot be reached: ", status.error_message(), "; try again");
  return errors::ToGrpcStatus(absl::UnavailableError(text), calls_->NextSpread());
}

}  // namespace tacho::server::cluster
