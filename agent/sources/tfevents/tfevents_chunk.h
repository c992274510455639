// Reads a bounded piece of an event file, whole records only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "agent/sources/tfevents/beneath_directory.h"
#include "client/tfevents/position.h"

namespace tacho::agent {

struct TfeventsChunkLimits {
  // Bytes of the file to read at once: enough to make a batch worth its overhead, and a few ms of
  // work.
  uint64_t chunk_bytes = uint64_t{256} << 10;
  // A longer record is skipped unread. An event of scalars has a few hundred bytes; what is this
  // large is a graph or images, and reading it would only cost memory.
  uint64_t max_payload_bytes = uint64_t{4} << 20;
};

struct TfeventsChunk {
  enum class Outcome {
    kMore,      // Stopped at a limit; there is more to read.
    kAtEnd,     // The rest is not a whole record yet, if there is anything.
    kShrunk,    // Shorter than what was read, but it begins as it did: being written anew, perhaps.
    kReplaced,  // Not the file that was read. Start with an empty position.
    // It begins as it did, but has other bytes where reading had stopped: a copy that is being made
    // in pieces, or what a network file system shows meanwhile; or, if it stays so, another file.
    kDiffers,
    kCorrupt,     // The record at `end` is damaged for the reason in `text`.
    kUnreadable,  // The system says why in `text`; try again later.
  };
  Outcome outcome = Outcome::kAtEnd;
  std::string text;
  // The position after the chunk.
  uint64_t end = 0;
  uint32_t first_crc = 0;
  uint32_t last_crc = 0;
  uint64_t skipped_records = 0;  // Longer than the limit.
};

// Reads the file `relative` below `root` on from `position`, to its chunk_end if that is not 0.
// `visit` gets each record's payload and returns what is wrong with it, or nullptr; its damage ends
// the chunk before that record. A dead position is only compared with the file (kReplaced,
// kDiffers, kShrunk or kAtEnd).
TfeventsChunk ReadTfeventsChunk(BeneathDirectory* root, const std::string& relative,
                                const client::TfeventsPosition& position,
                                const TfeventsChunkLimits& limits,
                                absl::FunctionRef<const char*(absl::string_view payload)> visit);

}  // namespace tacho::agent
