// The parts of the event file source share this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source_log.h"
#include "agent/sources/tfevents/tfevents_chunk.h"
#include "client/tfevents/rows.h"
#include "proto/base/clock.h"

namespace tacho::agent {

// Since the source was made.
struct TfeventsStats {
  uint64_t scalars = 0;  // Stored.
  client::TfeventsSkipped skipped;
  uint64_t refused = 0;  // Scalars that the sink would not take for another reason than room.
  uint64_t skipped_records = 0;  // Too long to be looked at.
  uint64_t dead_files = 0;       // Found damaged.
  uint64_t replaced_files = 0;
  uint64_t unreadable = 0;      // Times that a file or directory could not be read.
  uint64_t unmatched_runs = 0;  // Left out because of their name.
};

struct TfeventsContext {
  // Measures work; stored times come from the files.
  std::function<absl::Time()> clock = MonotonicNow;
  TfeventsChunkLimits limits;
  TfeventsStats stats;
  absl::flat_hash_set<uint64_t> series;  // Hashes of those known.
  size_t max_series = 0;
  SourceLog* log = nullptr;
};

}  // namespace tacho::agent
