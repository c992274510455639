// Reports what was refused or folded of a stream's messages to all who want to know: the agent in
// its next Ack, the metrics, the ledgers of limits and of jobs, and the log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/log.h"
#include "server/ingest/acks.h"
#include "server/ingest/admission.h"
#include "server/ingest/ingest_metrics.h"
#include "server/ingest/layouts.h"
#include "server/limits/series_limiting.h"
#include "storage/model/event.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// The reason that a sender reads for a limit.
v1::Reject::Reason RejectReasonOf(storage::Limit limit);

// One thread at a time.
class RefusalReport {
 public:
  // Nothing is owned; everything must outlive this.
  struct Options {
    const Admission* admission = nullptr;
    IngestMetrics* metrics = nullptr;
    limits::SeriesLimiting* limiting = nullptr;
    AckCoalescer* acks = nullptr;  // May be null: then no agent is told.
    const log::Log* log = nullptr;
    std::function<absl::Time()> now = absl::Now;
  };
  explicit RefusalReport(Options options);

  // For the log, once it is known.
  void SetAgent(std::string agent_id) { agent_id_ = std::move(agent_id); }

  // The series of a new layout that a limit concerns.
  void LayoutDefined(const std::string& job, const StreamLayout& layout);
  // The samples of a batch of so many rows that are not stored, or are folded.
  void BatchSelected(const StreamLayout& layout, const RowSelection& selection, uint64_t rows_sent);
  // Samples that are refused one by one; `job` is empty if they are of none. `detail` is asked for
  // where it is told.
  void Refused(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
               const std::string& example, absl::FunctionRef<std::string()> detail);
  // How to keep the rules on times.
  std::string FutureDetail() const;
  std::string TooOldDetail() const;
  // An event that is refused for its time: in the future, or too old.
  void EventRefused(const storage::Event& event, bool future);
  // An event or attributes of a job for which there is no room. What becomes of them:
  // kObserve or kReject.
  storage::LimitAction JobWithoutRoom(const std::string& job);

 private:
  void Folded(const StreamLayout::Concerned& series, uint64_t samples);
  void Tell(const AckCoalescer::Refused& refused, absl::FunctionRef<void(v1::Reject*)> describe);
  void Log(const char* message, v1::Reject::Reason reason, uint64_t samples,
           const std::string& example) const;

  const Options options_;
  std::string agent_id_;
};

}  // namespace tacho::server::ingest
