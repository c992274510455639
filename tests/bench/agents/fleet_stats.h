// What a fleet counts, and reports as lines of JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/bench/agents/latencies.h"

namespace tacho::bench {

// Counts since the last report.
struct FleetStats {
  uint64_t rows_sent = 0;
  uint64_t rows_acknowledged = 0;
  uint64_t rows_resent = 0;
  uint64_t rows_late = 0;  // Sent more than a second after they were due.
  uint64_t samples_rejected = 0;
  uint64_t acks = 0;
  uint64_t connects = 0;
  std::map<std::string, uint64_t> ends;  // Connections, by why they ended.
  Latencies acknowledged_after;          // From the last sending of a message.
  Latencies durable_after;               // From when it was due.
  double lateness_s = 0;                 // Longest pause of this program's own loop.
};

// What a second was like: which ones have the slow acknowledgements.
struct SecondStats {
  Latencies acknowledged_after;  // Rows acknowledged in it.
  double lateness_s = 0;         // As above: slowness up to this is this program's own.
};

// How it stands now.
struct FleetState {
  uint32_t connected = 0;
  uint32_t welcomed = 0;
  uint64_t rows_outstanding = 0;  // Due, and not yet durable.
};

// `"name": value, ...` without braces.
std::string ToJsonMembers(const FleetStats& stats, const FleetState& state);

std::string ToJsonMembers(const SecondStats& stats, uint64_t second);

// As a JSON string, quotes included.
std::string JsonText(const std::string& text);

}  // namespace tacho::bench
