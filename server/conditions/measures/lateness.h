// How late each task comes to the barrier, step by step: the measure of straggling.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

enum class LatenessSource : uint8_t { kNone, kOwnTime, kBarrier, kInput, kStepTime };

// A row for each task of the window, a column for each step; NaN where it did not tell.
class StepMatrix {
 public:
  StepMatrix(size_t tasks, size_t steps);

  double& at(size_t task, size_t step) { return values_[task * steps_ + step]; }
  double at(size_t task, size_t step) const { return values_[task * steps_ + step]; }
  size_t tasks() const { return tasks_; }
  size_t steps() const { return steps_; }

  // Takes the median over tasks from each value of a step. Returns the median of those medians; 0
  // if there was nothing.
  double Center();
  // The median of a task over steps from `begin` until `end`; NaN if less than half of them are
  // there.
  double Over(size_t task, size_t begin, size_t end) const;

 private:
  size_t tasks_;
  size_t steps_;
  std::vector<double> values_;
};

struct Lateness {
  LatenessSource source = LatenessSource::kNone;
  std::vector<int64_t> steps;  // Columns; the newest last. Empty if too few told of any.
  StepMatrix late{0, 0};       // Seconds later than the median of the tasks.
  StepMatrix input{0, 0};      // Of it, by data_wait; all NaN if not recorded.
  StepMatrix barrier{0, 0};    // How much less it waited in the barrier; all NaN if not recorded.
  double typical = 0;          // T of straggling.h, seconds.
};

// Of the newest `max_steps` steps that at least half of the tasks told of.
Lateness MeasureLateness(const JobWindow& window, size_t max_steps);

}  // namespace tacho::server::conditions
