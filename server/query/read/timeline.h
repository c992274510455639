// Which attempt each step of a job belongs to, if the job restarted from a checkpoint and ran some
// steps twice. Both runs stay stored; the effective timeline uses, for each step, the latest
// attempt that reached it.
//
//   attempt 0   |0 ............ 100|             spans:  0..59 of 0, 60..90 of 1, 91..100 of 0
//   attempt 1            |60 .. 90|              superseded of attempt 0: 60..90
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/model/job.h"

namespace tacho::server::query {

// Both included; first <= last.
struct StepInterval {
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const StepInterval&, const StepInterval&) = default;
};

struct AttemptSteps {
  uint32_t attempt = 0;
  StepInterval steps;

  friend bool operator==(const AttemptSteps&, const AttemptSteps&) = default;
};

// Immutable, thread-safe.
class Timeline {
 public:
  Timeline() = default;  // Nothing is superseded.
  // The lowest and the highest step of each attempt, over all tasks and metrics. Each attempt comes
  // once, in any order; attempts without a step are left out.
  explicit Timeline(std::vector<AttemptSteps> attempts);
  static Timeline Of(const std::vector<storage::AttemptInfo>& attempts);

  // The attempt of each step: ascending, disjoint. Steps that no attempt encloses are in no span.
  const std::vector<AttemptSteps>& spans() const { return spans_; }
  // Whether any attempt has superseded steps.
  bool supersedes() const { return !superseded_.empty(); }
  // The steps of an attempt that a higher-numbered one encloses: ascending, disjoint, with steps
  // between them that are not superseded. Valid as long as the timeline.
  std::span<const StepInterval> SupersededOf(uint32_t attempt) const;

 private:
  std::vector<AttemptSteps> spans_;
  absl::flat_hash_map<uint32_t, std::vector<StepInterval>> superseded_;
};

// Whether one of `intervals`, which are as SupersededOf() returns them, has a step in first..last.
bool Overlaps(std::span<const StepInterval> intervals, int64_t first, int64_t last);

}  // namespace tacho::server::query
