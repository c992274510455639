// The sequences of one agent that are durable: everything up to a watermark, and a few ranges above
// it that were sent fresh ahead of a backlog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::storage {

struct SequenceRange {
  uint64_t first = 0;
  uint64_t last = 0;

  friend bool operator==(const SequenceRange&, const SequenceRange&) = default;
};

// Not thread-safe. Sequences count from 1.
class SequenceSet {
 public:
  // Everything up to and including this is in the set. 0 if 1 is not.
  uint64_t watermark() const { return watermark_; }
  // Ranges above watermark() + 1; ascending, disjoint, not adjacent.
  const std::vector<SequenceRange>& ahead() const { return ahead_; }

  bool Contains(uint64_t sequence) const;
  void Add(uint64_t sequence) { Add(SequenceRange{sequence, sequence}); }
  // Needs range.first <= range.last and range.first >= 1.
  void Add(SequenceRange range);

  // Bytes for a RocksDB value: varints watermark, number of ranges, then first and last of each.
  std::string Encode() const;
  static std::optional<SequenceSet> Decode(absl::string_view bytes);

  friend bool operator==(const SequenceSet&, const SequenceSet&) = default;

 private:
  uint64_t watermark_ = 0;
  std::vector<SequenceRange> ahead_;
};

// The record of one agent and one generation of its spool: the value under OriginKey().
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
