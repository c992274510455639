// How a request of another tool ended.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tacho::server::interop {

// What was refused for good is in the counters and ledgers of refusals too.
struct WriteOutcome {
  // OK: whatever is not refused below is durable.
  //   UNAVAILABLE        nothing, or a part, is stored. The whole request may come again: what is
  //                      stored already is not stored twice.
  //   PERMISSION_DENIED  a job is not the caller's; nothing is stored.
  //   FAILED_PRECONDITION  (MISDIRECTED) other collectors of the cluster keep all jobs in it; the
  //                        text names one. If they keep only some, those samples or events are
  //                        refused, and the others stored.
  absl::Status status;
  uint64_t stored = 0;             // Samples, the ends of series among them; or events.
  uint64_t stored_histograms = 0;  // Native ones, each of which is several samples here.
  uint64_t refused = 0;            // Samples or events that will never be stored.
  std::string refusal;             // Why the first of them is not, in words.
};

}  // namespace tacho::server::interop
