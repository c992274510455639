// When a finding becomes a condition, and when it is over: hysteresis, as a small state machine
// without clocks.
//
//              present for hold_for                     absent for clear_after
//   UNKNOWN ─┬──────────────────────▶ TRUE ─┬────────────────────────────────▶ FALSE
//     ▲      │ judged, absent               │ not judged for clear_after
//     │      └──────────▶ FALSE             └──────────▶ UNKNOWN
//     └── not judged for clear_after ── FALSE ── present for hold_for ──▶ TRUE
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"

namespace tacho::server::conditions {

enum class ConditionStatus : uint8_t { kUnknown, kFalse, kTrue };

class ConditionState {
 public:
  struct Times {
    absl::Duration hold_for;
    absl::Duration clear_after;
  };
  enum class Change : uint8_t {
    kNone,
    kRaised,   // TRUE now.
    kCleared,  // It was TRUE.
    kOther,    // Between FALSE and UNKNOWN; or TRUE as before, but of another reason, severity or
               // first culprit.
  };

  // What a detector found at `now_ns`, which does not fall. While `frozen` the condition is neither
  // raised nor cleared.
  Change Update(const Finding& finding, int64_t now_ns, const Times& times, bool frozen = false);

  // As it was raised before this process began.
  void Restore(const Finding& finding, int64_t since_ns, int64_t changed_ns);
  // Over at once, whatever the detector would say. `reason` and `message` say why.
  Change End(int64_t now_ns, std::string reason, std::string message);

  ConditionStatus status() const { return status_; }
  // Of TRUE: the newest that was present. Of others: the reason and message that came with it.
  const Finding& finding() const { return finding_; }
  // Of TRUE: since when by the data, as the finding that raised it said. Of others: since when by
  // the clock of Update(). 0: nobody knows.
  int64_t since_ns() const { return since_ns_; }
  int64_t changed_ns() const { return changed_ns_; }  // When the status changed last; 0: never.

 private:
  Change BePresent(const Finding& finding, int64_t now_ns, const Times& times, bool frozen);
  Change BeAbsent(const Finding& finding, int64_t now_ns, const Times& times, bool frozen);
  void Become(ConditionStatus status, const Finding& finding, int64_t since_ns, int64_t now_ns);

  ConditionStatus status_ = ConditionStatus::kUnknown;
  Finding finding_;
  int64_t since_ns_ = 0;
  int64_t changed_ns_ = 0;
  std::optional<int64_t> present_since_;  // Without a break, while not TRUE.
  std::optional<int64_t> absent_since_;   // Without a break, while TRUE; and while FALSE, since it
                                          // was not judged.
};

}  // namespace tacho::server::conditions
