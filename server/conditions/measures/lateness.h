// How late each task reaches the barrier, step by step: the measure of Straggling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/base/check.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

enum class LatenessSource : uint8_t { kNone, kOwnTime, kBarrier, kInput, kStepTime };

// A row for each task of the window, a column for each step; NaN where nothing is recorded.
class StepMatrix {
 public:
  StepMatrix(size_t tasks, size_t steps);

  double& at(size_t task, size_t step) {
    TACHO_CHECK(task < tasks_ && step < steps_);
    return values_[task * steps_ + step];
  }
  double at(size_t task, size_t step) const {
    TACHO_CHECK(task < tasks_ && step < steps_);
    return values_[task * steps_ + step];
  }
  size_t tasks() const { return tasks_; }
  size_t steps() const { return steps_; }

  // Subtracts the median over tasks from the values of each step. Returns the median of those
  // medians; 0 if nothing is recorded.
  double Center();
  // The median of a task over the steps [begin, end); NaN if less than half of them are recorded.
  double Over(size_t task, size_t begin, size_t end) const;

 private:
  size_t tasks_;
  size_t steps_;
  std::vector<double> values_;
};

struct Lateness {
  LatenessSource source = LatenessSource::kNone;
  std::vector<int64_t> steps;  // Columns; the newest last. Empty if too few tasks reported any.
  StepMatrix late{0, 0};       // Seconds later than the median of the tasks.
  StepMatrix input{0, 0};      // The part by data_wait; all NaN if not recorded.
  StepMatrix barrier{0, 0};    // How much less it waited there; all NaN if not recorded.
  double typical = 0;          // T of Straggling, seconds.
};

// Over the newest `max_steps` steps that at least half of the tasks reported.
Lateness MeasureLateness(const JobWindow& window, size_t max_steps);

}  // namespace tacho::server::conditions
