// The one way in for what other tools write, whatever the protocol: series get their places on
// sheets, samples become rows, and the store says when they are durable. The same admission,
// limits, quotas and rights hold as for agents.
//
//   ForeignWrite -> LabelMapping -> SeriesSheets (Admission::AdmitLayout, Store::RegisterLayout)
//                -> rows of sheets (Admission::Window) -> Store::AppendRows -> WriteOutcome
//   ForeignEvents -> LabelMapping -> Admission::AdmitEvent -> EventsInFlight -> Store::AppendEvent
//                 -> WriteOutcome
//
// In a cluster both go another way for jobs of other members: Elsewhere, and there the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "server/edge/quotas.h"
#include "server/ingest/admission.h"
#include "server/ingest/ingest_metrics.h"
#include "server/ingest/refusal_report.h"
#include "server/interop/events_in_flight.h"
#include "server/interop/formats/foreign_events.h"
#include "server/interop/formats/foreign_write.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/told_metrics.h"
#include "server/interop/passing/elsewhere.h"
#include "server/interop/passing/sender.h"
#include "server/interop/passing/write_outcome.h"
#include "server/interop/series_sheets.h"
#include "server/limits/series_limiting.h"
#include "server/process/clock_watch.h"
#include "server/process/reloadable.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::interop {

// Nothing is owned; everything must outlive the intake.
struct IntakeOptions {
  storage::Store* store = nullptr;
  const ingest::Admission* admission = nullptr;
  ingest::IngestMetrics* metrics = nullptr;
  limits::SeriesLimiting* limiting = nullptr;
  edge::Quotas* quotas = nullptr;
  const process::ClockWatch* clock_watch = nullptr;  // Null: the clock is right.
  Elsewhere* elsewhere = nullptr;                    // Null: nothing is passed on.
  prometheus::Registry* registry = nullptr;
  std::function<absl::Time()> now = absl::Now;
  std::function<absl::Time()> monotonic = MonotonicNow;
  log::Log log;
};

// Thread-safe. To be destroyed after the store is closed: its callbacks reach into this.
class Intake final : public process::Reloadable {
 public:
  using Done = std::function<void(WriteOutcome)>;

  //   INVALID_ARGUMENT  as LabelMapping::Create().
  static absl::StatusOr<std::unique_ptr<Intake>> Create(const config::v1::Interop& config,
                                                        IntakeOptions options);

  // For a door, before it unpacks a request, which may take much memory.
  //   UNAVAILABLE  the collector drains, its memory is short, or the bucket, for which
  //                acknowledgements wait, does not answer.
  absl::Status CheckOpen() const;
  // Stores a request, and passes on what other members of the cluster keep. `done` is called once:
  // perhaps before this returns, perhaps on the thread of the store's committer or one of gRPC, so
  // it must return soon. `write` is not used after this has returned.
  void Write(const ForeignWrite& write, const Sender& sender, Done done);
  // The same for events. One that equals a stored event in everything, its time included, is a
  // repeat, and counts as stored.
  void WriteEvents(const ForeignEvents& write, const Sender& sender, Done done);

  // The other member of the cluster that keeps what has these labels; nullopt: it is this
  // collector's, or cannot be passed on.
  std::optional<uint32_t> PassesTo(const storage::Labels& labels, const Sender& sender) const;
  Elsewhere* elsewhere() const { return options_.elsewhere; }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  class Request;
  class EventsRequest;

  Intake(IntakeOptions options, std::shared_ptr<const LabelMapping> mapping, uint64_t max_series);
  std::shared_ptr<const LabelMapping> mapping() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether what another member keeps can be passed on.
  bool CanPass(const Sender& sender) const {
    return options_.elsewhere != nullptr && options_.elsewhere->CanPass(sender);
  }
  // Whether the sender and the job may send now; `job` may be null.
  absl::Status CheckRates(edge::TokenBucket* sender, edge::TokenBucket* job) const;
  // Asked before anything is refused for its time.
  absl::Status CheckClock() const;

  const IntakeOptions options_;
  SeriesSheets sheets_;
  ToldMetrics told_;
  EventsInFlight in_flight_;
  absl::Mutex report_mutex_;  // The report counts for one request at a time.
  ingest::RefusalReport report_ ABSL_GUARDED_BY(report_mutex_);
  prometheus::Gauge& remembered_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<const LabelMapping> mapping_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::interop
