// The losses of the agent: added up for the log, and for the Gap that reports it to the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/spool/spooled_message.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// The collector refuses a Gap with a longer reason, which may hold what others have written.
inline constexpr size_t kMaxLossReasonBytes = 512;

// The losses of the agent, added up between two lines of the log.
//
// Not thread-safe.
class LossReport {
 public:
  // Reasons beyond these, which others may have worded, are added up in one line.
  static constexpr size_t kMaxReasons = 32;

  // Adds one message. A line to log if nothing was said of this reason within the last minute: with
  // all that came since.
  std::optional<std::string> Add(uint64_t sequence, uint64_t rows, absl::string_view reason,
                                 absl::Time now);

 private:
  struct Sum {
    uint64_t messages = 0;
    uint64_t rows = 0;
    absl::Time said = absl::InfinitePast();
  };
  std::map<std::string, Sum, std::less<>> sums_;  // By reason; "" is all others.
};

// Adds up what is lost when a run of spooled entries is dropped.
//
// Takes the entries in ascending order, without holes.
class SpoolLosses {
 public:
  void Add(uint64_t sequence, const SpooledMessage& message);
  // An entry that cannot be read, or is durable, or whose rows another Gap has counted.
  void AddUncounted(uint64_t sequence);

  uint64_t entries() const { return entries_; }
  uint64_t messages() const { return messages_; }  // Lost now, without Gaps.
  uint64_t rows() const { return rows_; }

  // First, if at all: takes in an earlier Gap that ends where the entries begin.
  void Continue(const v1::Gap& gap);

  // The report for the collector, sequences not set: last comes one Gap over the dropped entries,
  // which takes in the Gaps among them that touch it. The others come first, as they were. None if
  // nothing was added.
  std::vector<v1::ClientMessage> Gaps(absl::string_view reason) const;

 private:
  v1::SequenceRange lost_;
  uint64_t entries_ = 0;
  uint64_t messages_ = 0;
  uint64_t rows_ = 0;        // In the dropped entries.
  uint64_t older_rows_ = 0;  // Reported by the Gaps taken in.
  std::vector<v1::ClientMessage> apart_;
};

}  // namespace tacho::agent
