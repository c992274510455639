// The window of a synthetic fleet as it grows with time. Each look adds only what came since the
// look before, so that days of a job can be judged every few seconds.
//
// Tracks are kept as the collector keeps them: they cover the whole attempt, and their older points
// are thinned out. SyntheticFleet::At() has the newest points instead. Tasks that never started are
// there, without rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"
#include "server/phases/phases.h"
#include "tests/support/synthetic_window.h"

namespace tacho::testing {

class SyntheticFollower {
 public:
  // `points`: the most of each track; the first task has up to 8 times as many, at most 2,048, as
  // in a job whose tasks share the room. `fleet` outlives it.
  SyntheticFollower(const SyntheticFleet& fleet, size_t points);

  // As seen `seconds` after the attempt started, not before the last look. The caller may change
  // the window if it changes it back.
  server::conditions::JobWindow& At(double seconds);

 private:
  void AddRows(uint32_t task, double now);
  void AddSamples(uint32_t host, double now);
  void AddEvents();
  // Its row of a step was lost with the task.
  bool Lost(uint32_t task, size_t index) const;

  const SyntheticFleet& fleet_;
  const size_t points_;
  const std::vector<server::conditions::WindowEvent> events_;  // Of the whole attempt.
  const server::phases::PhaseCover phases_;
  size_t next_event_ = 0;
  std::vector<size_t> next_step_;  // By task.
  size_t next_sample_ = 0;
  std::vector<double> idle_since_;  // By chip.
  server::conditions::JobWindow window_;
};

}  // namespace tacho::testing
