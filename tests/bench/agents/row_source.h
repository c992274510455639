// What the agents of a fleet send, as bytes of tacho.v1.ClientMessage.
//
// A message is a function of its agent and its sequence, so that nothing needs to be kept for
// sending it again. Values come from rows of a few hosts of fleet_generator.h, which repeat.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tacho/v1/ingest.pb.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {

struct RowShape {
  uint32_t series = kSeries;  // A layout.
  uint32_t layouts = 1;       // An agent; each is a task of its own.
  uint32_t rows = 1;          // A message.
  double rate = 1;            // Rows a second of each layout; sets how far apart their times are.
  uint32_t hosts_per_job = 50;
  int64_t start_unix_ns = 0;  // Time of the first rows.
  uint64_t generation = 1;    // The same for every spool.
};

// Sequences count from 1 and go round the layouts. One thread at a time: views hold until the next
// call.
class RowSource {
 public:
  explicit RowSource(const RowShape& shape);

  absl::string_view Hello(uint32_t agent, uint64_t first_sequence);
  absl::string_view Layout(uint32_t agent, uint32_t layout);
  absl::string_view Batch(uint32_t agent, uint64_t sequence);

  std::string AgentId(uint32_t agent) const;

 private:
  absl::string_view Bytes();

  const RowShape shape_;
  std::string series_;                       // The columns of every layout, serialized.
  std::vector<std::vector<double>> values_;  // The values of a row, by host and row.
  std::vector<int64_t> steps_;
  v1::ClientMessage message_;
  std::string bytes_;
};

}  // namespace tacho::bench
