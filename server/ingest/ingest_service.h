// tacho.v1.Ingest: one AgentStream for each agent that is connected.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "proto/base/log.h"
#include "server/ingest/acks.h"
#include "server/ingest/admission.h"
#include "server/ingest/agent_clocks.h"
#include "server/ingest/agent_ledger.h"
#include "server/ingest/agent_stream.h"
#include "server/ingest/definition_queue.h"
#include "server/ingest/ingest_limits.h"
#include "server/ingest/ingest_metrics.h"
#include "server/process/clock_watch.h"
#include "server/process/reloadable.h"
#include "server/security/access_control.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"
#include "tacho/v1/ingest.grpc.pb.h"

namespace tacho::server::ingest {

struct IngestServiceOptions {
  storage::Store* store = nullptr;                  // Not owned.
  prometheus::Registry* registry = nullptr;         // Not owned.
  config::v1::Collector::Ingest limits;             // At the start.
  absl::Duration retention = absl::ZeroDuration();  // Older rows are dropped. Zero keeps all.
  edge::Quotas* quotas = nullptr;                   // Not owned.
  edge::ConnectionTable* connections = nullptr;     // Not owned; may be null.
  limits::SeriesLimiting* limiting = nullptr;       // Not owned.
  // Acknowledgements of a stream are at least this far apart. Longer saves more of the server's
  // time for a busy stream (half of what a message costs is its Ack), and lets agents hold more
  // unacked.
  absl::Duration ack_tick = absl::Milliseconds(50);
  std::function<absl::Time()> now = absl::Now;
  std::string version;
  AgentLedger* ledger = nullptr;                     // Not owned; may be null.
  AgentClocks* clocks = nullptr;                     // Not owned; may be null.
  const process::ClockWatch* clock_watch = nullptr;  // Not owned. Null: the clock is right.
  AgentAsker* asker = nullptr;                       // Not owned; may be null.
  log::Log log;
  // Not owned. Null lets everybody write everything.
  const security::AccessControl* access = nullptr;
  // Not owned. Null: this collector keeps every job.
  const cluster::Membership* membership = nullptr;
};

// Thread-safe. To be destroyed after the gRPC server has shut down and the store is closed: the
// store's callbacks reach into it.
// Reloads `ingest`.
class IngestService final : public v1::Ingest::WithRawCallbackMethod_Stream<v1::Ingest::Service>,
                            public process::Reloadable {
 public:
  explicit IngestService(IngestServiceOptions options);
  ~IngestService() override;

  ByteStreamReactor* Stream(grpc::CallbackServerContext* context) override;
  // Begins a stream, whatever carries it: `peer` is its other end, as grpc::ServerContext::peer(),
  // and `caller` who that is, or why it is not let in. The stream deletes itself in OnDone().
  ByteStreamReactor* Begin(const std::string& peer, absl::StatusOr<security::Caller> caller)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the streams of callers that AccessControl does not let go on. Everything that they sent
  // before is stored and acknowledged.
  void RecheckCallers() ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses new streams and messages from now on, and finishes each stream with UNAVAILABLE as soon
  // as what it sent is durable and acknowledged. Returns whether all were gone before `deadline`, a
  // moment of MonotonicNow().
  bool Drain(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t open_streams() const ABSL_LOCKS_EXCLUDED(mutex_);
  // For other ways in than a stream.
  const Admission& admission() const { return admission_; }
  IngestMetrics* metrics() { return &metrics_; }

  uint64_t samples_rejected() const { return metrics_.samples_rejected(); }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override {
    return limits_.Prepare(config);
  }

 private:
  absl::Status CheckNewStream() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogTurnedAway(absl::string_view peer, const absl::Status& why) const;
  void OnGone(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<AgentStream>> LiveStreams() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const security::AccessControl* const access_;
  IngestMetrics metrics_;
  IngestLimits limits_;
  Admission admission_;
  AgentRegistry agents_;
  edge::ConnectionTable* const connections_;
  PendingBytes total_pending_;
  StreamContext context_;

  mutable absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  // Not owned: a stream owns itself and says when it is gone.
  absl::flat_hash_map<uint64_t, std::weak_ptr<AgentStream>> streams_ ABSL_GUARDED_BY(mutex_);

  // Last: their threads use the others.
  AckPacer pacer_;
  WakeTimer timer_;
  DefinitionQueue definitions_;
};

}  // namespace tacho::server::ingest
