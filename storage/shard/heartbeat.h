// The sign of life of a collector in a cluster with spares: an object `v1/members/ADDRESS` that it
// writes again and again. Others see that it lives when the object changes, by their own clocks.
// They may be wrong without harm (takeover.h).
//
// Format: docs/bucket_format.md, "Signs of life".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho::storage {

struct Heartbeat {
  std::string address;            // HOST:PORT, as the configuration of the cluster names it.
  uint64_t life = 0;              // Random for each start of the process.
  uint64_t count = 0;             // Rises with each write of a life.
  std::optional<uint32_t> shard;  // Which it owns. None: it waits for one.
  std::string version;            // The program's; for people.

  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

// Characters that a key may not have are written as _HH, in hexadecimal.
std::string HeartbeatKey(absl::string_view address);

std::string EncodeHeartbeat(const Heartbeat& heartbeat);
// Reads bytes that may be anything. DATA_LOSS: it is none, or of a newer format.
absl::StatusOr<Heartbeat> DecodeHeartbeat(absl::string_view bytes);

}  // namespace tacho::storage
