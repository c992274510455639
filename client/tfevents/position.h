// How far one event file has been stored; kept over restarts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::client {

struct TfeventsPosition {
  // All records before it are stored, except for what `chunk_end` describes.
  uint64_t offset = 0;
  // Stored checksums of the first record and of the one that ends at `offset`. They identify a file
  // that was copied or renamed, and reveal one that was replaced. Meaningless while offset is 0.
  uint32_t first_crc = 0;
  uint32_t last_crc = 0;
  bool dead = false;  // The bytes at `offset` are damaged; the file is never read again.

  bool placed = false;             // Whether `attempt` has been decided.
  uint32_t attempt = 0;            // The next scalar's.
  std::optional<int64_t> highest;  // Highest step of a scalar so far.

  // If not 0, the records from `offset` to here are being stored, ordered by attempt, tag and place
  // in the file, and this much of them is: everything below (done_attempt, done_tag), and the first
  // done_rows of that.
  uint64_t chunk_end = 0;
  uint32_t done_attempt = 0;
  std::string done_tag;
  uint64_t done_rows = 0;

  friend bool operator==(const TfeventsPosition&, const TfeventsPosition&) = default;

  std::string Encode() const;
  // nullopt if Encode() did not write the text.
  static std::optional<TfeventsPosition> Decode(absl::string_view text);
};

}  // namespace tacho::client
