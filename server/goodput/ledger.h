// Where the wall time of a job went: every nanosecond of it is in exactly one bucket. The code is
// pure: all inputs come in as arguments, time included. docs/goodput.md defines the ledger for
// users.
//
//   attempt 0  |init|compile|steps ... 100|          |down|
//   attempt 1                                             |init|restore|60 .. 100 .. 140|
//                       the time of 60..100 of attempt 0 turns from productive_step to wasted
//
// A job has attempts; an attempt has the time from its first sign of life to its last, cut off
// where a higher-numbered attempt begins; time between them is down. Within an attempt the rows of
// one reference task show when a step was done. Time between two rows belongs to the steps, except:
//   1. Phases (server/phases) that begin in it. Where they overlap, the moment goes to the first of
//      restoring, compiling, checkpoint, evaluation, initializing. A phase that goes on past the
//      next row ends there; but a checkpoint or an evaluation that ends after that row ran beside
//      the steps and counts as nothing there. A later time without a row that it covers, of more
//      than twice the expected, it held up: all beyond the expected is the phase's. So a row that
//      is written just after its step's checkpoint began makes no difference.
//   2. The rows' phase metrics: checkpoint, evaluation, data wait, in this order; then what the
//   task
//      waited for slower hosts (job_losses.h).
//   3. Stalls: if more than max(60 s, 5 x expected) is left, all beyond the expected is stalled.
//      Expected is the median of the newest 64 steps before, times the number of steps. While fewer
//      than 5 steps are known, the limit is 10 min.
//
// Badput by segments of steps and their repetition follows Google's ml-goodput-measurement; unlike
// it, steps of any length count, ends need not be recorded, and nothing is clipped to make it sum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "server/goodput/goodput_bucket.h"
#include "server/goodput/ledger_spans.h"
#include "server/phases/phases.h"

namespace tacho::server::goodput {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// A step of the reference task. Seconds that are NaN or negative count as absent.
struct StepRow {
  int64_t time_ns = 0;
  int64_t step = 0;
  // The time of one step. A row that stands for several steps stands for that many times this.
  double step_seconds = kAbsent;
  double data_wait_seconds = kAbsent;
  // The next two are the pause since the row before.
  double checkpoint_seconds = kAbsent;
  double eval_seconds = kAbsent;
  double tokens = kAbsent;  // A counter.
  // For slower hosts, in all steps of the row.
  double waiting_seconds = kAbsent;
};

struct AttemptFacts {
  uint32_t attempt = 0;
  // The first and the last sign of life of any task. last_ns is the end if the attempt ended.
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  bool ended = false;
  bool ended_well = false;
  // The agent of a host reports and has reported no end of a task there: it hangs.
  bool lives = false;
  std::vector<phases::PhaseInterval> phases;  // The reference task's; ascending by start.
};

// The time that is an attempt's own.
struct AttemptSpan {
  size_t index = 0;  // Index of its facts.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};
// So long after its last sign of life a job is over.
inline constexpr int64_t kOverNs = 3600'000'000'000;
// Ascending, disjoint. `attempts` ascend by number; signs of life after `now_ns` count as of then.
// The newest attempt goes on until `now_ns` if it lives and is not over.
std::vector<AttemptSpan> SpansOf(const std::vector<AttemptFacts>& attempts, int64_t now_ns);

struct Ledger {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  BucketAmounts ns = {};  // Sums to end_ns - begin_ns.
  uint64_t productive_steps = 0;
  uint64_t wasted_steps = 0;
  uint64_t rewinds = 0;
  // The part of productive_step and wasted that went to steps that had been done before.
  int64_t repeated_ns = 0;

  int64_t wall_ns() const { return end_ns - begin_ns; }
  int64_t& operator[](GoodputBucket bucket) { return ns[static_cast<size_t>(bucket)]; }
  int64_t operator[](GoodputBucket bucket) const { return ns[static_cast<size_t>(bucket)]; }
};

// The same time for counters, which must not fall. In the ledger, repeating a step moves the time
// of its first run from productive_step to wasted. Here its second run is wasted, as it happens.
BucketAmounts AmountsAsTheyCame(const Ledger& ledger);

// Productive time divided by wall time; nullopt: no time has passed.
std::optional<double> GoodputRatio(const Ledger& ledger);

// The first pass over the steps finds where they fell back. After kMaxSegments it notices no more.
class RewindFinder {
 public:
  static constexpr size_t kMaxSegments = 1 << 16;

  void BeginSpan() { in_segment_ = false; }
  void Add(int64_t step);
  // For each segment, in order, the lowest step at which a later segment began: from there on its
  // own steps are wasted. INT64_MAX: none.
  std::vector<int64_t> Floors() const;

 private:
  bool in_segment_ = false;
  int64_t last_step_ = 0;
  std::vector<int64_t> firsts_;
};

// The newest rows of an attempt, for figures about steps.
struct StepSample {
  int64_t time_ns = 0;
  int64_t step = 0;
  double seconds = kAbsent;  // Seconds per step.
  double tokens = kAbsent;
};
inline constexpr size_t kMaxStepSamples = 1000;

struct LedgerOptions {
  int64_t stall_floor_ns = 60'000'000'000;
  double stall_factor = 5;
  int64_t stall_unknown_ns = 600'000'000'000;  // While fewer than min_known_steps are known.
  size_t min_known_steps = 5;
  size_t known_steps = 64;
  int64_t silent_ns = 300'000'000'000;  // Then a job that did not end is down …
  int64_t over_ns = kOverNs;            // … and then it is over, since its last sign of life.
  size_t max_spans = 0;                 // Bounds bucket_spans().
};

// Second pass. BeginSpan() and AddStep() as the spans and their rows come, those in the span
// ascending by time and with the same steps as RewindFinder was shown; then Finish().
class LedgerMaker {
 public:
  LedgerMaker(const std::vector<AttemptFacts>& attempts, std::vector<AttemptSpan> spans,
              std::vector<int64_t> floors, int64_t now_ns, const LedgerOptions& options = {});

  void BeginSpan();
  void AddStep(const StepRow& row);
  void Finish();

  // After Finish().
  const Ledger& total() const { return total_; }
  const std::vector<Ledger>& of_spans() const { return of_spans_; }
  const std::vector<AttemptSpan>& spans() const { return spans_; }
  // total() as it came about, and how many spans are not in it because of max_spans.
  const std::vector<BucketSpan>& bucket_spans() const { return bucket_spans_.spans(); }
  uint64_t bucket_spans_joined() const { return bucket_spans_.joined(); }
  // The newest span with steps; nullopt: no steps.
  std::optional<size_t> stepping_span() const { return stepping_span_; }
  const std::deque<StepSample>& samples() const { return samples_; }
  // Growth of the counter of tokens by the steps that it grew in, repeated ones included; nullopt:
  // no growth was seen. A counter that began anew in an attempt counts from there.
  std::optional<double> tokens_per_step() const;

 private:
  using Amounts = BucketAmounts;

  void EndSpan();
  void EndRunning(const Amounts& covered, int64_t covered_until_ns, int64_t free_ns);
  // Lays out what the ledger of the current span has got since it was `before`, from at_ns_ on.
  void LaySpans(const Amounts& before, std::optional<StepBounds> steps);
  // Lays out time in one bucket.
  void LaySpan(GoodputBucket bucket, uint32_t attempt, int64_t from_ns, int64_t ns);
  // Adds time of the step after the last one, which is not done.
  void AddInProgress(int64_t ns);
  // Returns what the phases that begin in [from, until) cover of it, sets *last_end_ns to the end
  // of the last of them, and placed_ to where they are.
  Amounts TakePhases(int64_t from_ns, int64_t until_ns, bool until_is_step, int64_t* last_end_ns);
  // What checkpoints and evaluations that began before `from_ns` held up, if that time is too long
  // for its steps. Adds it to *amounts and placed_, and returns how much it is.
  int64_t TakeCarried(int64_t from_ns, int64_t until_ns, int64_t free_ns, int64_t steps,
                      Amounts* amounts);
  // Puts what a step did not explain into stalled; returns the rest.
  int64_t TakeStall(int64_t free_ns, int64_t steps, Ledger* ledger) const;
  bool IsStall(int64_t free_ns, int64_t steps) const;
  int64_t Expected(int64_t steps) const;
  void Remember(int64_t step_ns);
  void Sample(const StepRow& row, double seconds, bool continues);
  void CountTokens(const StepRow& row, bool continues);

  const std::vector<AttemptFacts>& attempts_;
  std::vector<AttemptSpan> spans_;
  const std::vector<int64_t> floors_;
  const int64_t now_ns_;
  const LedgerOptions options_;
  std::vector<Ledger> of_spans_;
  Ledger total_;
  std::optional<size_t> stepping_span_;
  std::deque<StepSample> samples_;
  double tokens_grown_ = 0;
  double token_steps_ = 0;
  LedgerSpans bucket_spans_;

  // State of the span that is being filled.
  bool open_ = false;
  int64_t at_ns_ = 0;  // All before is in a bucket.
  size_t next_phase_ = 0;
  bool has_step_ = false;
  int64_t last_step_ = 0;
  std::optional<StepSample> counted_;  // The newest row with tokens, since the last rewind.
  std::deque<int64_t> known_;          // ns of the newest steps.
  std::vector<BucketSpan> placed_;     // By the last TakePhases().
  std::vector<size_t> carried_;        // Phases that went on past a row, by index.

  size_t segments_ = 0;              // Begun so far.
  std::optional<int64_t> max_step_;  // The highest step of all spans.
};

}  // namespace tacho::server::goodput
