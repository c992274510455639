// Records the agent itself: its identity, its cost, what waits in its spool, what it lost, and the
// health of each source.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/self/source_ledger.h"
#include "agent/spool/spool_stats.h"
#include "proto/base/clock.h"

namespace tacho::agent {

// Counts what has become of the rows that sources gave, since the agent's start.
struct DeliveryFigures {
  uint64_t waiting_messages = 0;  // In the spool, which the collector does not have on disk.
  uint64_t waiting_bytes = 0;
  uint64_t rows = 0;
  uint64_t lost_rows = 0;  // Given up, of these and of those that waited before.
  // Messages that a collector had acknowledged and no longer had when the agent connected again:
  // those that the spool still held, and the others.
  uint64_t missing_again = 0;
  uint64_t missing_gone = 0;
  // How far the host's clock is ahead of the collector's, and the bound on the error of that;
  // nullopt: no collector has answered yet.
  std::optional<double> clock_ahead_seconds = {};
  std::optional<double> clock_uncertainty_seconds = {};
};

struct SelfOptions {
  std::string job = {};   // Under which rows and events are filed: that of the host.
  std::string host = {};  // Label of every row.
  std::string agent_id = {};
  std::string version = {};
  absl::Duration interval = absl::Seconds(10);
  log::Log log = {};
  std::shared_ptr<const SourceLedger> ledger = nullptr;
  std::function<DeliveryFigures()> delivery = [] { return DeliveryFigures(); };
  std::function<SpoolStats()> spool = nullptr;  // For losses by reason; may be null.
  // Samples that the collector refused, by reason; may be null.
  std::function<std::map<std::string, uint64_t>()> refused = nullptr;
  std::function<absl::Time()> monotonic = MonotonicNow;
};

// A row at each multiple of the interval, with the series of tacho_agent_* that docs/notation.md
// lists, and an event when a source begins to fail ("source_failed", fields "source", "code"; the
// message is the reason), when its reason changes, and when it works again ("source_recovered").
// There is at most one event a source and interval. One thread.
class SelfSource : public Source {
 public:
  // A poll that takes longer counts as a failure of its source, with DEADLINE_EXCEEDED.
  static constexpr absl::Duration kPollTakesTooLong = absl::Minutes(1);

  explicit SelfSource(SelfOptions options);

  absl::string_view name() const override { return "agent"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;

 private:
  Sample Take(absl::Time now, const std::vector<SourceHealth>& sources) const;
  void TellChanges(absl::Time now, const std::vector<SourceHealth>& sources, RowSink* sink);

  const SelfOptions options_;
  SourceLog log_;
  Cadence cadence_;
  std::map<std::string, absl::Status> told_;  // By source.
  SeriesRows rows_;
};

}  // namespace tacho::agent
