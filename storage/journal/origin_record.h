// What is kept of one agent and one generation of its spool: the value under OriginKey().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/journal/sequence_set.h"

namespace tacho::storage {

struct OriginRecord {
  SequenceSet durable;
  // Day of the epoch on which the agent was last heard of; its record is forgotten when that is
  // long ago. In the bytes it is the day of the last write, and may be missing.
  std::optional<uint32_t> heard_day;

  // The set, then le32 heard_day if it is known.
  std::string Encode() const;
  static std::optional<OriginRecord> Decode(absl::string_view bytes);
};

}  // namespace tacho::storage
