// The protocol of one stream, without the stream: messages in, what to answer out. Hello makes a
// Welcome; Layouts are registered; Batch, Event, Attributes and Gap go through admission to the
// store, which settles them with the stream's AckCoalescer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/edge/quotas.h"
#include "server/ingest/acks.h"
#include "server/ingest/admission.h"
#include "server/ingest/agent_asker.h"
#include "server/ingest/agent_clocks.h"
#include "server/ingest/agent_ledger.h"
#include "server/ingest/definition_queue.h"
#include "server/ingest/ingest_metrics.h"
#include "server/ingest/layouts.h"
#include "server/ingest/refusal_report.h"
#include "server/limits/series_limiting.h"
#include "server/process/clock_watch.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// All streams share these. Nothing is owned; everything must outlive them.
struct SessionContext {
  storage::Store* store = nullptr;
  const Admission* admission = nullptr;
  AgentRegistry* agents = nullptr;
  IngestMetrics* metrics = nullptr;
  std::function<absl::Time()> now = absl::Now;
  std::string version;  // For Welcome.
  edge::Quotas* quotas = nullptr;
  limits::SeriesLimiting* limiting = nullptr;
  DefinitionQueue* definitions = nullptr;            // Null: no layout is queued.
  AgentLedger* ledger = nullptr;                     // May be null.
  AgentClocks* clocks = nullptr;                     // May be null.
  const process::ClockWatch* clock_watch = nullptr;  // Null: the clock is right.
  log::Log log;
  AgentAsker* asker = nullptr;  // Null: agents are asked for nothing.
};

// One thread at a time.
class StreamSession {
 public:
  // `stream` is unique among live streams; `evict` ends this one when a newer takes over. `rights`
  // are those of the caller.
  StreamSession(const SessionContext* context, std::shared_ptr<AckCoalescer> acks, uint64_t stream,
                std::function<void()> evict,
                security::RightsPtr rights = security::Rights::Everything());

  // How requests reach the agent; before Hello. Without it the agent is asked for nothing.
  void SetSend(AgentAsker::Send send) { send_ = std::move(send); }

  // Handles one message; a Welcome is what must be sent before any Ack. An error ends the stream
  // with that status once what came before has settled: proto/tacho/v1/ingest.proto has the codes.
  absl::StatusOr<std::optional<v1::Welcome>> Handle(const v1::ClientMessage& untrusted);

  // Whether a layout in a message of so many bytes is work for the queue of definitions. Its place
  // there.
  bool IsToBeQueued(size_t bytes) const;
  int64_t DefinitionDebt() const;

  // What the last message showed of the agent's clock, for the next Ack; once.
  std::optional<v1::ClockEstimate> TakeClock() { return std::exchange(clock_seen_, std::nullopt); }

  // How long to wait before the next message, for what the last one has used up.
  const edge::Quotas::Wait& wait() const { return wait_; }
  // quotas.agent_samples_per_second in rows such as this stream has sent; 0: no limit.
  uint64_t RowsPerSecond() const;

 private:
  // Any message but a batch.
  absl::StatusOr<std::optional<v1::Welcome>> HandleOther(const v1::ClientMessage& untrusted);
  absl::StatusOr<v1::Welcome> HandleHello(const v1::Hello& untrusted);
  // PERMISSION_DENIED unless the caller may use the id; then it is the caller's from now on.
  absl::Status ClaimAgentId(const std::string& agent_id) const;
  void HandleClock(const v1::ClockReport& untrusted);
  absl::Status HandleLayout(const v1::Layout& untrusted);
  absl::Status HandleEvent(const v1::Event& untrusted);
  absl::Status HandleAttributes(const v1::Attributes& untrusted);
  absl::Status HandleGap(const v1::Gap& untrusted);

  // Before something is refused for its time.
  //   UNAVAILABLE  (CLOCK_DOUBTED) it may be the collector's clock that is wrong: nothing is to be
  //                settled, so that the agent keeps it.
  absl::Status CheckClock() const;
  absl::Status CheckMay(const std::string& job, absl::string_view field) const;
  void NoteHost(const std::string& host);
  // Closes the holes below what the agent's spool still holds: what the store never got is lost or,
  // if the agent has other collectors too, will not come.
  void CloseHoles(const storage::SequenceSet& durable, const v1::Hello& hello);
  // Closes one, with the reason and whether it is counted as lost.
  void CloseHole(storage::SequenceRange lost, absl::string_view reason, bool counts);
  // The agent may know acknowledgements of what is not durable any more: counts and logs that.
  void ReportMissing(const storage::SequenceSet& durable, const v1::Hello& hello);
  // The layout that is stored.
  //   FAILED_PRECONDITION  its job has expired.
  absl::StatusOr<storage::LayoutPtr> FindStored(StreamLayout* layout) const;
  // Whether an event or attributes of the job may be stored; if not, its message is settled.
  bool AdmitJob(const std::string& job);
  void Charge(uint64_t samples, edge::TokenBucket* job);
  edge::Rate DefinitionRate() const;
  // Charges the definition of `series` series.
  void ChargeDefinitions(uint64_t series);
  // Counts a message as accepted, and returns what the store calls when it has settled.
  storage::AppendDone Accept(uint64_t sequence, uint64_t bytes);

  const SessionContext& context_;
  const std::shared_ptr<AckCoalescer> acks_;
  const uint64_t stream_;
  const std::function<void()> evict_;
  const security::RightsPtr rights_;
  RefusalReport refusals_;
  AgentAsker::Send send_;

  bool hello_seen_ = false;
  AgentLedger::Stream heard_;
  bool imports_ = false;                       // It is no agent.
  std::unique_ptr<AgentClocks::Clock> clock_;  // Null: the agent has not said its time.
  std::optional<v1::ClockEstimate> clock_seen_;
  storage::Origin origin_;  // Its sequence is that of the message at hand.
  absl::flat_hash_map<uint32_t, StreamLayout> layouts_;  // By the agent's number.
  uint64_t columns_ = 0;                                 // Columns of all layouts.
  RowSelection selection_;
  std::shared_ptr<edge::TokenBucket> agent_bucket_;
  uint64_t rows_ = 0;
  uint64_t samples_ = 0;
  edge::Quotas::Wait wait_;
  std::shared_ptr<edge::TokenBucket> definitions_;  // Null before Hello.
};

}  // namespace tacho::server::ingest
