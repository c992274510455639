#include "server/ingest/ingest_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tacho::server {
namespace {

// What one stream may have waiting for the disk before it is not read from any more. A commit takes
// some milliseconds, in which an agent that catches up sends about this much.
constexpr uint64_t kMaxStreamPendingBytes = 1 << 20;

absl::Status Draining() { return absl::UnavailableError("the collector is shutting down"); }

AdmissionOptions MakeAdmissionOptions(const IngestServiceOptions& options, IngestMetrics* metrics) {
  return {options.limits, options.retention, options.now, metrics};
}

}  // namespace

IngestService::IngestService(IngestServiceOptions options)
    : metrics_(options.registry),
      admission_(MakeAdmissionOptions(options, &metrics_)),
      pacer_(options.ack_tick) {
  context_.session = {options.store,
                      &admission_,
                      &agents_,
                      &metrics_,
                      std::move(options.now),
                      std::move(options.version)};
  context_.pacer = &pacer_;
  context_.total_pending = &total_pending_;
  context_.max_stream_pending_bytes = kMaxStreamPendingBytes;
  // Half, so that the messages under way when streams stop reading still find room.
  context_.max_total_pending_bytes = options.queue_bytes / 2;
  context_.on_gone = [this](uint64_t stream) { OnGone(stream); };
}

IngestService::~IngestService() = default;

ByteStreamReactor* IngestService::Stream(grpc::CallbackServerContext* /*context*/) {
  absl::MutexLock lock(&mutex_);
  const uint64_t stream = ++last_stream_;
  const uint32_t max_streams = admission_.limits().max_streams();
  if (draining_ || streams_.size() >= max_streams) {
    metrics_.StreamEnded(absl::StatusCode::kUnavailable);
    return new RefusedStream(draining_
                                 ? Draining()
                                 : absl::UnavailableError(absl::StrCat(
                                       "ingest.max_streams, ", max_streams, ", are open already")),
                             stream);
  }
  const std::shared_ptr<AgentStream> reactor = AgentStream::Start(&context_, stream);
  streams_[stream] = reactor;
  metrics_.StreamStarted();
  return reactor.get();
}

void IngestService::OnGone(uint64_t stream) {
  metrics_.StreamGone();
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

bool IngestService::Drain(absl::Time deadline) {
  admission_.StartDraining();
  std::vector<std::shared_ptr<AgentStream>> live;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    for (const auto& [stream, weak] : streams_) {
      if (auto reactor = weak.lock()) live.push_back(std::move(reactor));
    }
  }
  for (const auto& reactor : live) reactor->End(Draining());
  live.clear();
  absl::MutexLock lock(&mutex_);
  const auto gone = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return streams_.empty(); };
  return mutex_.AwaitWithDeadline(absl::Condition(&gone), deadline);
}

}  // namespace tacho::server
