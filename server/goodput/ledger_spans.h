// A ledger as it came about: which bucket each moment went to. Time that only an amount is known of
// is laid out within its step in a fixed order: pauses and waits come before the step's own time,
// and what it took beyond the expected comes last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/goodput/goodput_bucket.h"

namespace tacho::server::goodput {

struct StepBounds {
  int64_t first = 0;
  int64_t last = 0;

  friend bool operator==(const StepBounds&, const StepBounds&) = default;
};

// Time that went into one bucket without a break.
struct BucketSpan {
  GoodputBucket bucket = GoodputBucket::kOther;
  uint32_t attempt = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::optional<StepBounds> steps;  // Only productive_step and wasted have some.

  int64_t ns() const { return end_ns - begin_ns; }
  friend bool operator==(const BucketSpan&, const BucketSpan&) = default;
};

// Joins the shortest spans with their longer neighbour, whose bucket and attempt they take, until
// at most `most` (at least 1) are left. `spans` are ascending, without time between them. Returns
// how many took another bucket or attempt.
uint64_t JoinShortest(size_t most, std::vector<BucketSpan>* spans);

// Takes time in ascending order. Holds at most kHeldSpans: where more come, the shortest of those
// so far are joined early. Not thread-safe.
class LedgerSpans {
 public:
  static constexpr size_t kHeldSpans = 1 << 17;

  // 0: none are wanted, and nothing is held.
  explicit LedgerSpans(size_t most) : most_(most) {}

  // Time from `from_ns` on, as much as there is in `amounts`. Some of it is known to have been in
  // `placed`, which are ascending and disjoint, and not before `from_ns`; the rest of `amounts`
  // fills the time before, between and after them.
  void Lay(uint32_t attempt, int64_t from_ns, const BucketAmounts& amounts,
           std::span<const BucketSpan> placed, std::optional<StepBounds> steps);
  // No more comes: joins what is too many.
  void Finish();

  const std::vector<BucketSpan>& spans() const { return spans_; }
  uint64_t joined() const { return joined_; }

 private:
  // A span of no time is none.
  void Add(const BucketSpan& span);

  const size_t most_;
  std::vector<BucketSpan> spans_;
  uint64_t joined_ = 0;
};

}  // namespace tacho::server::goodput
