// Reads one series over a range, whatever frames hold it: head and columns, merged.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/series.h"

namespace tacho::storage {

struct ReadOptions {
  // Times in [begin_ns, end_ns).
  int64_t begin_ns = INT64_MIN;
  int64_t end_ns = INT64_MAX;  // INT64_MAX is "no end": a sample at that very time is returned too.
  // Steps in [first_step, last_step]; rows without a step are left out if either is set.
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  // Only this attempt.
  std::optional<uint32_t> attempt;
};

// Some samples of one series, one entry a sample in every column.
struct SampleBlock {
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // kNoStep where a row has none.
  std::vector<uint32_t> attempts;
  std::vector<double> values;  // Bits as recorded; no stale markers.

  size_t size() const { return times.size(); }
  void clear();
};

// One thread at a time. Samples come in ascending (time, attempt, step); of several writes of the
// same (time, attempt, step) the latest counts. Memory is bounded by the frames that overlap in
// time, one in the usual case.
class SeriesReader {
 public:
  virtual ~SeriesReader() = default;

  // Replaces *block with the next samples; false if there are none left.
  //   DATA_LOSS  stored bytes do not match; the text names the column.
  virtual absl::StatusOr<bool> Next(SampleBlock* block) = 0;
};

}  // namespace tacho::storage
