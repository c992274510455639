// What the campaigns put into an agent's spool, and what they find in one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/spool/spool.h"

namespace tacho::crash {

struct SpoolContents {
  uint64_t generation = 0;
  uint64_t begin = 1;                // The oldest sequence that is kept.
  uint64_t end = 1;                  // The next one.
  std::vector<std::string> entries;  // From it on, serialized; empty where there is none.
  std::string checkpoint;

  friend bool operator==(const SpoolContents&, const SpoolContents&) = default;
};
std::string EncodeSpool(const SpoolContents& contents);
SpoolContents DecodeSpool(const std::string& bytes);

// Appends message `number`, a row or an event, with a checkpoint. It becomes one entry.
absl::Status AppendToSpool(agent::Spool* spool, uint64_t number);
// Whether an entry is that message, under that sequence.
bool IsSpooled(const std::string& entry, uint64_t number, uint64_t sequence);
// The checkpoint that it is appended with.
std::string CheckpointOf(uint64_t number);

// Everything that is synced.
absl::StatusOr<SpoolContents> ReadSpool(agent::Spool* spool);

}  // namespace tacho::crash
