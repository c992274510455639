// Reads one series over a range, whatever frames hold it: head and columns, merged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "storage/model/event.h"
#include "storage/model/series.h"

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
  // Summaries are to tell their lowest and highest step; a frame's steps are decoded for that.
  bool bound_steps = false;
  // Who reads much that is not asked for again soon: values decoded for it are kept for the next
  // reader only where there is room enough, so that no others have to leave for them. (Time
  // columns, which series share, are.)
  bool read_once = false;
};

// Samples of one series where they lie in memory, one entry a sample in every column.
struct SampleColumns {
  std::span<const int64_t> times;
  std::span<const int64_t> steps;  // kNoStep where a row has none.
  std::span<const double> values;  // Bits as recorded; no stale markers.

  size_t size() const { return times.size(); }
  SampleColumns Rows(size_t begin, size_t end) const {
    const size_t count = end - begin;
    return {times.subspan(begin, count), steps.subspan(begin, count), values.subspan(begin, count)};
  }
};

// Some samples of one series, one entry a sample in every column.
struct SampleBlock {
  std::vector<int64_t> times;
  std::vector<int64_t> steps;  // kNoStep where a row has none.
  std::vector<uint32_t> attempts;
  std::vector<double> values;  // Bits as recorded; no stale markers.

  size_t size() const { return times.size(); }
  void clear();
  SampleColumns columns() const { return {times, steps, values}; }
};

// From one sample to the next.
enum class StepOrder {
  kAny,        // Or not known.
  kNeverFall,  // And some are equal.
  kRise,
};

// Samples of one series and one attempt that are held elsewhere.
struct SampleView {
  uint32_t attempt = 0;
  SampleColumns columns;
  StepOrder step_order = StepOrder::kAny;
  // Of kNeverFall: the newest sample of each step but that of the last sample, which is the last.
  // `step_ends_from` is to be taken from each.
  std::span<const uint32_t> step_ends;
  uint32_t step_ends_from = 0;
  std::shared_ptr<const void> owner;  // Of what the spans show.

  size_t size() const { return columns.size(); }
};

// A run of samples of one series without the samples: what a stored column says of itself. All of
// them are finite and of one attempt.
struct SampleSummary {
  uint32_t attempt = 0;
  // Of the first and the last sample in time.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  int64_t first_step = kNoStep;
  int64_t last_step = kNoStep;
  // Of all of them that have a step, only with ReadOptions::bound_steps; kNoStep: none has.
  int64_t lowest_step = kNoStep;
  int64_t highest_step = kNoStep;
  double first = 0;
  double last = 0;
  uint64_t count = 0;
  double min = 0;
  double max = 0;
  double sum = 0;  // As additions of doubles in ascending time have it.
};

// How far some samples of one series reach. All of them are of one attempt.
struct SampleBounds {
  uint32_t attempt = 0;
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
};

// One thread at a time. Samples come in ascending (time, attempt, step); of several writes of the
// same (time, attempt, step) the latest counts (of two layouts that write the same series in turns
// before either is sealed, all rows of the one that wrote last). Memory is bounded by the frames
// that overlap at one time, one in the usual case, plus the series' open rows.
class SeriesReader {
 public:
  virtual ~SeriesReader() = default;

  // Replaces *block with the next samples, at least one; false if there are none left.
  //   DATA_LOSS  stored bytes do not match; the text names the column.
  virtual absl::StatusOr<bool> Next(SampleBlock* block) = 0;

  // For coarse queries: if what comes next is a whole column that knows its summary and `fits` says
  // that this will do, replaces *summary with it and skips the column, of which no value is
  // decoded. false: nothing has been skipped, go on with Next().
  virtual absl::StatusOr<bool> NextSummary(absl::FunctionRef<bool(const SampleSummary&)> /*fits*/,
                                           SampleSummary* /*summary*/) {
    return false;
  }

  // For who does not change samples, a block without copying: if what comes next are samples of one
  // column that need no merging, replaces *view with at least one of them. false: nothing has been
  // skipped, go on with Next().
  virtual absl::StatusOr<bool> NextView(SampleView* /*view*/) { return false; }

  // For who asks only how far samples reach: if what comes next are samples of one column whose
  // bounds are known without looking at each, replaces *bounds with those and skips them. false:
  // nothing has been skipped, go on with Next().
  virtual absl::StatusOr<bool> NextBounds(SampleBounds* /*bounds*/) { return false; }
};

// What was durable at one moment, for some series, for as long as the view lives. One thread at a
// time; readers must not outlive it. Reading many series through one view is consistent and cheaper
// than one by one, the more so in the order in which Store::FindSeries() returns them: then one
// metric of one job is one walk over its keys.
class ReadView {
 public:
  virtual ~ReadView() = default;

  // Samples of one of the view's series.
  virtual std::unique_ptr<SeriesReader> Read(const SeriesPtr& series,
                                             const ReadOptions& options) = 0;

  // Columns that its readers have had to decode so far: those that were not known.
  virtual uint64_t columns_decoded() const { return 0; }
};

// A view of a whole job, also of series that are found only after it was made. What it shows is
// exactly what was durable at one moment: every message whole or not at all.
class JobView : public ReadView {
 public:
  // Events in [begin_ns, end_ns), INT64_MAX being no end; ascending in time.
  virtual absl::StatusOr<std::vector<Event>> Events(int64_t begin_ns, int64_t end_ns) const = 0;
};

}  // namespace tacho::storage
