// Watches the trainers' processes: those that write rings.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"

namespace tacho::agent {

struct ProcessOptions {
  std::string job = {};    // Under which the rows are filed: that of the host.
  std::string host = {};   // Label of every row.
  std::string rings = {};  // Directory of the rings.
  std::string proc = "/proc";
  absl::Duration interval = absl::Seconds(10);
  uint32_t max_processes = 64;
  log::Log log = {};
  double ticks_per_second = 100;
  double page_bytes = 4096;
};

// A row with the series host_process_* of each process, labelled of_job and of_task as its ring
// says, at each multiple of the interval. They are the host's rows and not the job's: a job whose
// trainers hang must fall silent. A process that has ended has a stale marker once. One that this
// agent cannot see (a container without the host's process numbers) has none; the start time shows
// which process a number stands for. Children of a trainer are not counted with it. One
// thread.
class ProcessSource : public Source {
 public:
  static constexpr size_t kMaxOpenFiles = 100'000;  // Counted; a trainer with more leaks them.

  explicit ProcessSource(ProcessOptions options);

  absl::string_view name() const override { return "processes"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;

 private:
  struct Trainer {
    uint32_t pid = 0;
    uint64_t start_ticks = 0;
    std::string job = {};
    uint32_t task = 0;
  };

  void FindTrainers();
  void Open(const std::string& path);
  void Take(const Trainer& trainer, Sample* out) const;

  const ProcessOptions options_;
  SourceLog log_;
  Cadence cadence_;
  SeriesRows rows_;
  LayoutBudget budget_;
  std::map<std::string, Trainer> trainers_;  // By the ring's path.
};

}  // namespace tacho::agent
