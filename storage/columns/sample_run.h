// Samples of one series out of one frame, ready to be merged with those of other frames.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/base/check.h"
#include "storage/codec/keys.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

// Samples that were written together: in ascending (time, attempt, step), each triple once, none of
// them a stale marker, all of them wanted. Taken from the front.
class SampleRun {
 public:
  // `samples` are as they came: in any order, with stale markers. The last of a triple counts. A
  // stale marker is no write: it neither appears nor hides anything.
  SampleRun(FramePosition position, SampleBlock samples, const ReadOptions& options);

  FramePosition position() const { return position_; }
  bool empty() const { return next_ == samples_.size(); }
  // Time of the next sample; the run is not empty.
  int64_t next_time_ns() const {
    TACHO_CHECK(!empty());
    return samples_.times[next_];
  }
  // The next sample and the last; the run is not empty.
  SampleEnds ends() const;

  // How many samples from the next one on have times below `end_ns` (INT64_MAX: all of them).
  size_t CountBefore(int64_t end_ns) const;
  // Appends the next `count` samples to *out and moves past them.
  void Take(size_t count, SampleBlock* out);

 private:
  FramePosition position_;
  SampleBlock samples_;
  size_t next_ = 0;
};

// Replaces *out with all samples before `end_ns` (INT64_MAX: all), merged: in ascending (time,
// attempt, step); of the same triple the one of the highest position counts. False if there are
// none.
bool TakeMerged(std::vector<SampleRun>* runs, int64_t end_ns, SampleBlock* out);

}  // namespace tacho::storage
