// When a finding raises a condition, and when its absence clears it: hysteresis, as a small state
// machine without clocks.
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
    kOther,    // Between FALSE and UNKNOWN; or still TRUE, with another reason, severity or first
               // culprit.
  };

  // The first culprit stays the first until findings have not named it for this long.
  static constexpr absl::Duration kCulpritStays = absl::Minutes(10);

  // Takes what a detector found at `now_ns`. While `frozen` the condition is
  // neither raised nor cleared. While it is TRUE, a culprit that is named again keeps its task and
  // step, so that equal tasks of one host do not take turns.
  Change Update(const Finding& finding, int64_t now_ns, const Times& times, bool frozen = false);

  // Restores a condition that was raised before this process started.
  void Restore(const Finding& finding, int64_t since_ns, int64_t changed_ns);
  // Ends the condition at once, for the given reason.
  Change End(int64_t now_ns, std::string reason, std::string message);

  ConditionStatus status() const { return status_; }
  // While TRUE: the newest finding that was present. Else: the reason and message of the change.
  const Finding& finding() const { return finding_; }
  // While TRUE: when it began, by the data of the finding that raised it. Else: when the status
  // began, by the times passed to Update(). 0: unknown.
  int64_t since_ns() const { return since_ns_; }
  int64_t changed_ns() const { return changed_ns_; }  // When the status changed last; 0: never.

 private:
  Change BePresent(const Finding& finding, int64_t now_ns, const Times& times, bool frozen);
  Change BeAbsent(const Finding& finding, int64_t now_ns, const Times& times, bool frozen);
  // Keeps in `finding` what identifies the culprits so far.
  void KeepCulprits(int64_t now_ns, Finding* finding);
  void Become(ConditionStatus status, const Finding& finding, int64_t since_ns, int64_t now_ns);

  ConditionStatus status_ = ConditionStatus::kUnknown;
  Finding finding_;
  int64_t since_ns_ = 0;
  int64_t changed_ns_ = 0;
  int64_t named_ns_ = 0;  // When a finding named the first culprit last.
  // When the current run of findings that would change the status began. Present ones would change
  // it unless it is TRUE; absent ones if it is TRUE; unjudged ones if it is TRUE or FALSE.
  std::optional<int64_t> present_since_;
  std::optional<int64_t> absent_since_;
};

}  // namespace tacho::server::conditions
