// The times at which a job is not expected to step, as its events tell: "checkpoint_started" until
// "checkpoint_saved", and so on. Pairs are matched by task. An end without its beginning says
// nothing; a beginning whose end was lost ends where the same phase begins anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

enum class Phase : uint8_t {
  kInit,        // init_started .. initialized
  kCompile,     // compile_started .. compiled
  kRestore,     // restore_started .. checkpoint_restored
  kCheckpoint,  // checkpoint_started .. checkpoint_saved
  kEval,        // eval_started .. eval_ended
  kPreempted,   // preempted .. the next attempt
};

absl::string_view PhaseName(Phase phase);  // "initializing", "compiling", …

inline constexpr int64_t kStillOpen = INT64_MAX;

struct PhaseInterval {
  Phase phase = Phase::kInit;
  int64_t start_ns = 0;
  int64_t end_ns = kStillOpen;
  std::optional<uint32_t> task;

  bool open() const { return end_ns == kStillOpen; }
};

// Ascending by their beginning. O(n log n) in the number of events.
std::vector<PhaseInterval> FindPhases(const JobWindow& window);

// The time that any closed phase took, whatever the task. Immutable.
class PhaseCover {
 public:
  explicit PhaseCover(const std::vector<PhaseInterval>& phases);

  // Whether phases are more than a twentieth of the time from `from_ns` to `to_ns`. O(log n).
  bool Covers(int64_t from_ns, int64_t to_ns) const;

 private:
  struct Span {
    int64_t start_ns;
    int64_t end_ns;
  };
  std::vector<Span> spans_;  // Ascending, apart from each other.
};

}  // namespace tacho::server::conditions
