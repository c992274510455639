#include "server/ingest/ingest_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/timed_wait.h"
#include "server/errors/error_table.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::ingest {
IngestService::IngestService(IngestServiceOptions options)
    : access_(options.access),
      metrics_(options.registry),
      limits_(options.limits, options.log),
      admission_({&limits_, options.retention, options.now, &metrics_, options.membership}),
      connections_(options.connections),
      pacer_(options.ack_tick) {
  context_.session = {options.store,
                      &admission_,
                      &agents_,
                      &metrics_,
                      std::move(options.now),
                      std::move(options.version),
                      options.quotas,
                      options.limiting,
                      &definitions_,
                      options.ledger,
                      options.clocks,
                      options.clock_watch,
                      std::move(options.log),
                      options.asker};
  context_.pacer = &pacer_;
  context_.timer = &timer_;
  context_.total_pending = &total_pending_;
  total_pending_.Configure(
      {.is_full = [quotas = options.quotas](uint64_t bytes) { return quotas->IsFull(bytes); },
       .pacer = &pacer_});
  options.quotas->SetPendingSource([this] { return total_pending_.bytes(); });
  context_.on_gone = [this](uint64_t stream) { OnGone(stream); };
}

IngestService::~IngestService() { context_.session.quotas->SetPendingSource(nullptr); }

ByteStreamReactor* IngestService::Stream(grpc::CallbackServerContext* context) {
  return Begin(context->peer(), security::AdmitCall(access_, *context, security::Role::kWrite));
}

ByteStreamReactor* IngestService::Begin(const std::string& peer,
                                        absl::StatusOr<security::Caller> caller) {
  auto connection = connections_ == nullptr ? nullptr : connections_->Find(peer);
  absl::MutexLock lock(&mutex_);
  const uint64_t stream = ++last_stream_;
  const absl::Status refusal = caller.ok() ? CheckNewStream() : caller.status();
  if (!refusal.ok()) {
    metrics_.StreamEnded(refusal.code());
    if (caller.ok()) LogTurnedAway(peer, refusal);  // Else AccessControl has said it.
    return new RefusedStream(refusal, stream);
  }
  const std::shared_ptr<AgentStream> reactor =
      AgentStream::Start(&context_, stream, {peer, std::move(connection), *std::move(caller)});
  streams_[stream] = reactor;
  metrics_.StreamStarted();
  return reactor.get();
}

void IngestService::LogTurnedAway(absl::string_view peer, const absl::Status& why) const {
  context_.session.log.Limited(
      log::Level::kWarn, "stream turned away",
      {{"peer", peer}, {"code", absl::StatusCodeToString(why.code())}, {"reason", why.message()}});
}

absl::Status IngestService::CheckNewStream() const {
  if (draining_) return errors::Draining();
  const uint32_t max_streams = limits_.max_streams();
  if (streams_.size() >= max_streams) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           absl::StrCat("ingest.max_streams, ", max_streams, ", are open already"));
  }
  return context_.session.quotas->CheckNewStream();
}

void IngestService::OnGone(uint64_t stream) {
  metrics_.StreamGone();
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

uint64_t IngestService::open_streams() const {
  absl::MutexLock lock(&mutex_);
  return streams_.size();
}

std::vector<std::shared_ptr<AgentStream>> IngestService::LiveStreams() const {
  std::vector<std::shared_ptr<AgentStream>> live;
  for (const auto& [stream, weak] : streams_) {
    if (auto reactor = weak.lock()) live.push_back(std::move(reactor));
  }
  return live;
}

void IngestService::RecheckCallers() {
  if (access_ == nullptr) return;
  std::vector<std::shared_ptr<AgentStream>> live;
  {
    absl::MutexLock lock(&mutex_);
    live = LiveStreams();
  }
  for (const auto& reactor : live) {
    if (auto s = access_->Recheck(reactor->caller()); !s.ok()) reactor->End(std::move(s));
  }
}

bool IngestService::Drain(absl::Time deadline) {
  admission_.StartDraining();
  std::vector<std::shared_ptr<AgentStream>> live;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    live = LiveStreams();
  }
  for (const auto& reactor : live) reactor->End(errors::Draining());
  live.clear();
  absl::MutexLock lock(&mutex_);
  const auto gone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return streams_.empty(); };
  return AwaitUntil(&mutex_, absl::Condition(&gone), deadline);
}

}  // namespace tacho::server::ingest
