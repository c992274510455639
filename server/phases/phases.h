// The times at which a job is not expected to step, as its events say: from "checkpoint_started" to
// "checkpoint_saved", and so on. An end without a beginning says nothing. Where an end was lost,
// the phase ends when the same phase of the same task begins again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tacho::server::phases {

enum class Phase : uint8_t {
  kInit,        // init_started .. initialized
  kCompile,     // compile_started .. compiled
  kRestore,     // restore_started .. checkpoint_restored
  kCheckpoint,  // checkpoint_started .. checkpoint_saved
  kEval,        // eval_started .. eval_ended
  kPreempted,   // preempted .. the next attempt's init_started
};

absl::string_view PhaseName(Phase phase);  // "initializing", "compiling", …

// Whether an event of this kind begins or ends a phase.
bool IsPhaseEvent(absl::string_view kind);

inline constexpr int64_t kStillOpen = INT64_MAX;

struct PhaseInterval {
  Phase phase = Phase::kInit;
  int64_t start_ns = 0;
  int64_t end_ns = kStillOpen;
  std::optional<uint32_t> task = std::nullopt;

  bool open() const { return end_ns == kStillOpen; }
};

// The time that any closed phase took, whatever the task. Immutable.
class PhaseCover {
 public:
  // `phases` ascend by their beginning.
  explicit PhaseCover(const std::vector<PhaseInterval>& phases);

  // How much of the time from `from_ns` to `to_ns` phases took. O(log n), for short times.
  int64_t CoveredNs(int64_t from_ns, int64_t to_ns) const;
  // Whether that is enough to explain the time.
  bool Covers(int64_t from_ns, int64_t to_ns) const {
    return Explains(CoveredNs(from_ns, to_ns), to_ns - from_ns);
  }
  // More than a twentieth: clocks of tasks differ a little, so that a step may seem to begin before
  // a phase has ended.
  static bool Explains(int64_t covered_ns, int64_t length_ns) {
    return covered_ns > length_ns / 20;
  }

 private:
  struct Span {
    int64_t start_ns;
    int64_t end_ns;
  };
  std::vector<Span> spans_;  // Ascending, apart from each other.
};

// Pairs the events of a job or of one attempt. Not thread-safe.
class PhasePairs {
 public:
  // Events come in ascending time; those of other kinds are ignored. Each task has phases of its
  // own, and so have events of no task (nullopt).
  void Add(absl::string_view kind, int64_t time_ns, std::optional<uint32_t> task);
  // Ascending by their beginning. The pairs are empty afterwards.
  std::vector<PhaseInterval> Take();

 private:
  std::vector<PhaseInterval> phases_;
  std::map<std::pair<std::optional<uint32_t>, Phase>, size_t> open_;  // Places in phases_.
};

}  // namespace tacho::server::phases
