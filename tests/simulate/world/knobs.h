// The settings of a simulation that vary from seed to seed: small limits, so that each is met.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tacho::simulate {

struct Knobs {
  int agents = 3;
  int64_t check_every_s = 20;
  // Of the store; see StoreOptions.
  absl::Duration seal_age;
  uint32_t seal_rows = 64;
  absl::Duration merge_quiet;
  absl::Duration job_idle;
  absl::Duration commit_spacing;
  uint64_t queue_bytes = 0;
  uint64_t open_bytes = 0;
  uint64_t open_raw_bytes = 0;
  uint64_t journal_bytes = 0;
  uint64_t column_cache_bytes = 0;
  uint64_t series_at_open = 0;
  uint64_t ballast_bytes = 0;
  uint32_t series_per_job = 0;                            // Fewer than there are; 0: no limit.
  absl::Duration retention;                               // Zero: longer than the run.
  absl::Duration memory_round = absl::Milliseconds(100);  // See QuotasOptions.
  // Of the network; see SimNetworkOptions.
  absl::Duration latency_max;
  uint64_t bytes_per_second = 0;
  // Of agents; see StreamOptions, SpoolOptions and LaneOptions.
  uint32_t backlog_rows_per_second = 0;
  uint64_t short_backlog = 0;
  uint64_t spool_bytes = 0;
  absl::Duration sync_interval;
};

// Draws from ScheduleRandom(). `days`: the run lasts for days, and retention is to be reached.
Knobs DrawKnobs(bool days);

}  // namespace tacho::simulate
