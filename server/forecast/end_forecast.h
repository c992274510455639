// When a job will have done its planned steps, with a band, from how it came so far. Pure: no
// clock, no I/O.
//
// The past is cut into stretches of equal steps. What each took has everything in it: steps,
// checkpoints, evaluations, restarts, repeated steps and time down. The rest of the job is expected
// to be made of such stretches; how much they differ makes the band.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace tacho::server::forecast {

// When a job first got as far as a step.
struct ProgressPoint {
  int64_t time_ns = 0;
  int64_t step = 0;
};

// Keeps when a job got further, in bounded memory: with every other point dropped when there are
// too many. One thread at a time.
class Progress {
 public:
  static constexpr size_t kMost = 4096;

  // In ascending time. Steps that were reached before change nothing.
  void Add(int64_t time_ns, int64_t step);
  // With the newest point.
  std::vector<ProgressPoint> Take();

 private:
  std::vector<ProgressPoint> points_;
  ProgressPoint newest_;
  bool any_ = false;
  size_t stride_ = 1;  // One of so many points is kept.
  size_t since_kept_ = 0;
};

struct EndForecast {
  int64_t likely_ns = 0;
  int64_t earliest_ns = 0;  // It ends between these with a probability of about kBandShare.
  int64_t latest_ns = 0;
};

inline constexpr size_t kLeastProgressPoints = 10;

// `points` ascend in both. `last_step` is the step after which the job ends.
//   FAILED_PRECONDITION  the job has not done enough steps; the text says how many are missing.
//                        Or the end lies behind all times that there are.
//   OUT_OF_RANGE         the last step is recorded already.
absl::StatusOr<EndForecast> ForecastEnd(const std::vector<ProgressPoint>& points, int64_t last_step,
                                        int64_t now_ns);

}  // namespace tacho::server::forecast
