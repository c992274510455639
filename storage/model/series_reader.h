// Reads one series over a range, whatever frames hold it: head and columns, merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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
  // For callers that read much and do not ask for it again soon: decoded values are kept for the
  // next reader only where there is room enough, so that nothing else leaves the cache for them.
  // (Time columns, which series share, are kept.)
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
  void resize(size_t size);
  SampleColumns columns() const { return {times, steps, values}; }
};

// From one sample to the next.
enum class StepOrder {
  kAny,        // Or not known.
  kNeverFall,  // And some are equal.
  kRise,
};

// Samples of one series that are held elsewhere.
struct SampleView {
  uint32_t attempt = 0;                // All samples have this one,
  std::span<const uint32_t> attempts;  // unless this has one a sample: it is empty or differs.
  SampleColumns columns;
  StepOrder step_order = StepOrder::kAny;
  // Only for kNeverFall: the newest sample of each step, but for the step of the last sample, whose
  // newest is the last.
  // `step_ends_from` is to be taken from each.
  std::span<const uint32_t> step_ends;
  uint32_t step_ends_from = 0;
  // Owns what the spans show. Null: they are valid until the chunk that shows them is used again.
  std::shared_ptr<const void> owner;

  size_t size() const { return columns.size(); }
  uint32_t AttemptOf(size_t i) const { return attempts.empty() ? attempt : attempts[i]; }
};

// A run of samples of one series without the samples: what a stored column says of itself. All of
// them are finite and of one attempt.
struct SampleSummary {
  uint32_t attempt = 0;
  // Times and steps of the first and the last sample in time.
  int64_t first_time_ns = 0;
  int64_t last_time_ns = 0;
  int64_t first_step = kNoStep;
  int64_t last_step = kNoStep;
  // Over all samples that have a step, only with Want::step_bounds; kNoStep: none has.
  int64_t lowest_step = kNoStep;
  int64_t highest_step = kNoStep;
  double first = 0;
  double last = 0;
  uint64_t count = 0;
  double min = 0;
  double max = 0;
  double sum = 0;  // As additions of doubles in ascending time have it.
};

// What a caller can use instead of samples.
struct Want {
  // Whether a summary will do for what it summarises; no value of that is decoded then. Null:
  // never.
  std::function<bool(const SampleSummary&)> summary;
  // Summaries must know their lowest and highest step; a frame's steps are decoded for that.
  bool step_bounds = false;
};
// Wants every summary that there is.
Want AnySummary();

// The next piece of a series: samples, at least one, or a summary that the caller can use. One
// thread at a time. Use one for a whole scan: what it has allocated is used again.
class Chunk {
 public:
  Chunk() = default;
  Chunk(Chunk&&) = default;
  Chunk& operator=(Chunk&&) = default;

  bool is_summary() const { return is_summary_; }
  const SampleSummary& summary() const;  // Only if it is one.
  const SampleView& samples() const;     // Only if it is none.
  // Times of the first and the last sample.
  int64_t first_time_ns() const;
  int64_t last_time_ns() const;

  // --- For readers and filters -----------------------------------------------------------------

  void Set(const SampleSummary& summary);
  void Set(SampleView samples);
  // Room for samples of the chunk's own. Call ShowBlock() once they are in it.
  SampleBlock* block() { return &block_; }
  void ShowBlock();
  // Makes the samples it shows the chunk's own. Changes of block() show after ShowBlock().
  void CopyToBlock();

 private:
  bool is_summary_ = false;
  bool shows_block_ = false;
  SampleSummary summary_;
  SampleView samples_;
  SampleBlock block_;
};

// Where the samples that Next() has yet to return begin and end.
struct SampleEnds {
  struct End {
    int64_t time_ns = 0;
    int64_t step = kNoStep;
    uint32_t attempt = 0;
  };
  // Samples of the lowest and of the highest time, of which there may be others.
  End first;
  End last;

  void Include(const SampleEnds& other);
};

class ReadView;

// One thread at a time. Samples come in ascending (time, attempt, step); of several writes of the
// same (time, attempt, step) the latest counts (of two layouts that write the same series in turns
// before either is sealed, all rows of the one that wrote last). Memory is bounded by the frames
// that overlap at one time, one in the usual case, plus the series' open rows.
class SeriesReader {
 public:
  virtual ~SeriesReader();

  // Replaces *chunk with what comes next; false if there is nothing left. Samples of a column that
  // needs no merging are shown where they lie, without copying.
  //   DATA_LOSS  stored bytes do not match; the text names the column.
  virtual absl::StatusOr<bool> Next(const Want& want, Chunk* chunk) = 0;

  // Looks ahead: at the headers of the first and the last columns, which are decoded only where
  // those leave it open. nullopt: nothing is left.
  //   DATA_LOSS  as above.
  virtual absl::StatusOr<std::optional<SampleEnds>> FindEnds() = 0;

  // Holds the view that it reads, for callers that need one series only.
  void Own(std::unique_ptr<ReadView> view);

 private:
  std::unique_ptr<ReadView> view_;  // Mostly null: the view is the caller's.
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
