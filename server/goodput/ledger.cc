// Walks the steps once and gives the time before each to buckets: first to phases from events, then
// to phase metrics, then to stalls; what is left is the steps' own.
#include "server/goodput/ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::goodput {
namespace {

constexpr std::array<absl::string_view, kGoodputBuckets> kBucketNames = {
    "productive_step", "initializing", "compiling", "restoring", "data_wait", "checkpoint",
    "evaluation",      "wasted",       "stalled",   "down",      "other",     "waiting_for_others",
};

// A moment goes to the first phase that covers it.
constexpr std::pair<phases::Phase, GoodputBucket> kPriority[] = {
    {phases::Phase::kRestore, GoodputBucket::kRestoring},
    {phases::Phase::kCompile, GoodputBucket::kCompiling},
    {phases::Phase::kCheckpoint, GoodputBucket::kCheckpoint},
    {phases::Phase::kEval, GoodputBucket::kEvaluation},
    {phases::Phase::kInit, GoodputBucket::kInitializing}};

// Returns at most `most`.
int64_t ToNs(double seconds, int64_t most) {
  if (!(seconds > 0)) return 0;
  const double ns = seconds * 1e9;
  return ns >= static_cast<double>(most) ? most : static_cast<int64_t>(ns);
}

int64_t Sum(const BucketAmounts& amounts) {
  int64_t sum = 0;
  for (const int64_t ns : amounts) sum += ns;
  return sum;
}

// Appends the parts of [begin_ns, end_ns) that none of `placed` covers, keeps those ascending, and
// returns the length of the parts. `placed` are ascending and disjoint.
int64_t Claim(GoodputBucket bucket, int64_t begin_ns, int64_t end_ns,
              std::vector<BucketSpan>* placed) {
  int64_t claimed = 0;
  int64_t at_ns = begin_ns;
  const size_t others = placed->size();
  const auto claim_until = [&](int64_t until_ns) {
    if (until_ns <= at_ns) return;
    claimed += until_ns - at_ns;
    placed->push_back({.bucket = bucket, .begin_ns = at_ns, .end_ns = until_ns});
  };
  for (size_t i = 0; i < others; ++i) {
    const BucketSpan other = (*placed)[i];
    claim_until(std::min(other.begin_ns, end_ns));
    at_ns = std::max(at_ns, other.end_ns);
  }
  claim_until(end_ns);
  std::sort(placed->begin(), placed->end(),
            [](const BucketSpan& a, const BucketSpan& b) { return a.begin_ns < b.begin_ns; });
  return claimed;
}

}  // namespace

absl::string_view GoodputBucketName(GoodputBucket bucket) {
  return kBucketNames.at(static_cast<size_t>(bucket));
}

BucketAmounts AmountsAsTheyCame(const Ledger& ledger) {
  auto amounts = ledger.ns;
  int64_t& productive = amounts[static_cast<size_t>(GoodputBucket::kProductiveStep)];
  int64_t& wasted = amounts[static_cast<size_t>(GoodputBucket::kWasted)];
  productive += wasted - ledger.repeated_ns;
  wasted = ledger.repeated_ns;
  return amounts;
}

std::optional<double> GoodputRatio(const Ledger& ledger) {
  if (ledger.wall_ns() <= 0) return std::nullopt;
  return static_cast<double>(ledger[GoodputBucket::kProductiveStep]) /
         static_cast<double>(ledger.wall_ns());
}

std::vector<AttemptSpan> SpansOf(const std::vector<AttemptFacts>& attempts, int64_t now_ns) {
  std::vector<AttemptSpan> spans;
  int64_t next_begin = INT64_MAX;  // The earliest begin of any higher-numbered attempt.
  for (size_t i = attempts.size(); i-- > 0;) {
    TACHO_CHECK(i == 0 || attempts[i - 1].attempt < attempts[i].attempt);
    const int64_t begin = std::min(attempts[i].first_ns, now_ns);
    const bool goes_on = i + 1 == attempts.size() && attempts[i].lives && !attempts[i].ended &&
                         now_ns - attempts[i].last_ns <= kOverNs;
    const int64_t last = goes_on ? now_ns : std::max(begin, std::min(attempts[i].last_ns, now_ns));
    if (begin < next_begin) spans.push_back({i, begin, std::min(last, next_begin)});
    next_begin = std::min(next_begin, begin);
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

void RewindFinder::Add(int64_t step) {
  if (in_segment_ && (step >= last_step_ || firsts_.size() >= kMaxSegments)) {
    last_step_ = step;
    return;
  }
  in_segment_ = true;
  last_step_ = step;
  firsts_.push_back(step);
}

std::vector<int64_t> RewindFinder::Floors() const {
  std::vector<int64_t> floors(firsts_.size(), INT64_MAX);
  for (size_t i = firsts_.size(); i-- > 1;) floors[i - 1] = std::min(floors[i], firsts_[i]);
  return floors;
}

LedgerMaker::LedgerMaker(const std::vector<AttemptFacts>& attempts, std::vector<AttemptSpan> spans,
                         std::vector<int64_t> floors, int64_t now_ns, const LedgerOptions& options)
    : attempts_(attempts),
      spans_(std::move(spans)),
      floors_(std::move(floors)),
      now_ns_(now_ns),
      options_(options),
      bucket_spans_(options.max_spans) {}

void LedgerMaker::BeginSpan() {
  EndSpan();
  TACHO_CHECK(of_spans_.size() < spans_.size());
  const AttemptSpan& span = spans_[of_spans_.size()];
  if (!of_spans_.empty()) {
    const int64_t until_ns = of_spans_.back().end_ns;
    LaySpan(GoodputBucket::kDown, attempts_[spans_[of_spans_.size() - 1].index].attempt, until_ns,
            span.begin_ns - until_ns);
  }
  Ledger& ledger = of_spans_.emplace_back();
  ledger.begin_ns = span.begin_ns;
  ledger.end_ns = span.end_ns;
  open_ = true;
  at_ns_ = span.begin_ns;
  next_phase_ = 0;
  has_step_ = false;
  known_.clear();
  carried_.clear();
}

LedgerMaker::Amounts LedgerMaker::TakePhases(int64_t from_ns, int64_t until_ns, bool until_is_step,
                                             int64_t* last_end_ns) {
  Amounts amounts = {};
  const auto& intervals = attempts_[spans_[of_spans_.size() - 1].index].phases;
  const auto starts_before = [&](int64_t time_ns) {
    return next_phase_ < intervals.size() && intervals[next_phase_].start_ns < time_ns;
  };
  while (starts_before(from_ns)) ++next_phase_;
  const size_t first = next_phase_;
  while (starts_before(until_ns)) ++next_phase_;
  placed_.clear();
  *last_end_ns = from_ns;
  for (const auto& [kind, bucket] : kPriority) {
    for (size_t i = first; i < next_phase_; ++i) {
      const phases::PhaseInterval& phase = intervals[i];
      if (phase.phase != kind) continue;
      const bool may_run_beside =
          bucket == GoodputBucket::kCheckpoint || bucket == GoodputBucket::kEvaluation;
      const int64_t end = phase.open() ? until_ns : phase.end_ns;
      if (until_is_step && may_run_beside && (end > until_ns || phase.open())) {
        carried_.push_back(i);
        if (!phase.open()) continue;
      }
      const int64_t end_ns = std::min(end, until_ns);
      if (end_ns <= phase.start_ns) continue;
      amounts[static_cast<size_t>(bucket)] += Claim(bucket, phase.start_ns, end_ns, &placed_);
      *last_end_ns = std::max(*last_end_ns, end_ns);
    }
  }
  return amounts;
}

int64_t LedgerMaker::TakeCarried(int64_t from_ns, int64_t until_ns, int64_t free_ns, int64_t steps,
                                 Amounts* amounts) {
  const auto& intervals = attempts_[spans_[of_spans_.size() - 1].index].phases;
  std::erase_if(carried_, [&](size_t i) { return intervals[i].end_ns <= from_ns; });
  if (carried_.empty()) return 0;
  const int64_t expected = Expected(steps);
  const bool held_up = known_.size() < options_.min_known_steps
                           ? IsStall(free_ns, steps)
                           : static_cast<double>(free_ns) > 2 * static_cast<double>(expected);
  if (!held_up) return 0;
  int64_t taken = 0;
  for (const size_t i : carried_) {
    const phases::PhaseInterval& phase = intervals[i];
    if (phase.start_ns >= from_ns) continue;
    const int64_t room = free_ns - expected - taken;
    const int64_t end_ns = std::min({phase.end_ns, until_ns, from_ns + std::max<int64_t>(0, room)});
    const GoodputBucket bucket = phase.phase == phases::Phase::kCheckpoint
                                     ? GoodputBucket::kCheckpoint
                                     : GoodputBucket::kEvaluation;
    const int64_t claimed = Claim(bucket, from_ns, end_ns, &placed_);
    (*amounts)[static_cast<size_t>(bucket)] += claimed;
    taken += claimed;
  }
  return taken;
}

int64_t LedgerMaker::Expected(int64_t steps) const {
  if (known_.empty()) return 0;
  std::vector<int64_t> sorted(known_.begin(), known_.end());
  const auto middle = sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double expected = static_cast<double>(*middle) * static_cast<double>(steps);
  return ToNs(expected / 1e9, INT64_MAX / 4);
}

bool LedgerMaker::IsStall(int64_t free_ns, int64_t steps) const {
  if (known_.size() < options_.min_known_steps) return free_ns > options_.stall_unknown_ns;
  if (free_ns <= options_.stall_floor_ns) return false;  // The usual case, without a median.
  return static_cast<double>(free_ns) >
         options_.stall_factor * static_cast<double>(Expected(steps));
}

int64_t LedgerMaker::TakeStall(int64_t free_ns, int64_t steps, Ledger* ledger) const {
  if (!IsStall(free_ns, steps)) return free_ns;
  const int64_t expected = std::min(free_ns, Expected(steps));
  (*ledger)[GoodputBucket::kStalled] += free_ns - expected;
  return expected;
}

void LedgerMaker::Remember(int64_t step_ns) {
  known_.push_back(step_ns);
  if (known_.size() > options_.known_steps) known_.pop_front();
}

void LedgerMaker::Sample(const StepRow& row, double seconds, bool continues) {
  const size_t span = of_spans_.size() - 1;
  if (!continues || stepping_span_ != span) samples_.clear();
  stepping_span_ = span;
  samples_.push_back({row.time_ns, row.step, seconds, row.tokens});
  if (samples_.size() > kMaxStepSamples) samples_.pop_front();
}

void LedgerMaker::CountTokens(const StepRow& row, bool continues) {
  if (!continues) counted_.reset();
  if (!std::isfinite(row.tokens) || row.tokens < 0) return;
  if (counted_.has_value() && row.tokens >= counted_->tokens && row.step > counted_->step) {
    tokens_grown_ += row.tokens - counted_->tokens;
    token_steps_ += static_cast<double>(row.step) - static_cast<double>(counted_->step);
  }
  counted_ = StepSample{.time_ns = row.time_ns, .step = row.step, .tokens = row.tokens};
}

std::optional<double> LedgerMaker::tokens_per_step() const {
  if (token_steps_ <= 0 || tokens_grown_ <= 0) return std::nullopt;
  return tokens_grown_ / token_steps_;
}

void LedgerMaker::LaySpans(const Amounts& before, std::optional<StepBounds> steps) {
  if (options_.max_spans == 0) return;
  Amounts amounts = of_spans_.back().ns;
  for (size_t i = 0; i < kGoodputBuckets; ++i) amounts[i] -= before[i];
  const uint32_t attempt = attempts_[spans_[of_spans_.size() - 1].index].attempt;
  bucket_spans_.Lay(attempt, at_ns_, amounts, placed_, steps);
}

void LedgerMaker::LaySpan(GoodputBucket bucket, uint32_t attempt, int64_t from_ns, int64_t ns) {
  Amounts amounts = {};
  amounts[static_cast<size_t>(bucket)] = ns;
  bucket_spans_.Lay(attempt, from_ns, amounts, {}, std::nullopt);
}

void LedgerMaker::AddStep(const StepRow& row) {
  TACHO_CHECK(open_);
  const AttemptSpan& span = spans_[of_spans_.size() - 1];
  Ledger& ledger = of_spans_.back();
  const bool falls_back =
      has_step_ && row.step < last_step_ && segments_ < RewindFinder::kMaxSegments;
  if (!has_step_ || falls_back) ++segments_;
  // The same step again is no progress; what lies outside the span is another attempt's time.
  if (has_step_ && row.step == last_step_) return;
  const int64_t time_ns = std::clamp(row.time_ns, at_ns_, span.end_ns);
  const int64_t steps = has_step_ && row.step > last_step_
                            ? static_cast<int64_t>(static_cast<uint64_t>(row.step) -
                                                   static_cast<uint64_t>(last_step_))
                            : 1;
  const Amounts before = ledger.ns;
  int64_t last_end_ns = 0;
  Amounts amounts = TakePhases(at_ns_, time_ns, /*until_is_step=*/true, &last_end_ns);
  if (has_step_) {
    TakeCarried(at_ns_, time_ns, time_ns - at_ns_ - Sum(amounts), steps, &amounts);
  }
  // Where an end was lost, the phase went on for no more than one row.
  const auto& intervals = attempts_[span.index].phases;
  std::erase_if(carried_,
                [&](size_t i) { return intervals[i].open() && intervals[i].start_ns < at_ns_; });
  const int64_t covered = Sum(amounts);
  int64_t free = time_ns - at_ns_ - covered;
  double seconds = row.step_seconds;
  const bool done_before = max_step_.has_value() && row.step <= *max_step_;
  if (falls_back || (!has_step_ && done_before)) ++ledger.rewinds;
  max_step_ = std::max(row.step, max_step_.value_or(row.step));
  if (!has_step_) {
    amounts[static_cast<size_t>(GoodputBucket::kInitializing)] += free;
  } else {
    const auto take = [&](GoodputBucket bucket, double phase_seconds) {
      int64_t& amount = amounts[static_cast<size_t>(bucket)];
      // An event may have reported the same pause.
      const int64_t more =
          std::clamp<int64_t>(ToNs(phase_seconds, INT64_MAX / 4) - amount, 0, free);
      amount += more;
      free -= more;
    };
    take(GoodputBucket::kCheckpoint, row.checkpoint_seconds);
    take(GoodputBucket::kEvaluation, row.eval_seconds);
    const int64_t paused = Sum(amounts);
    take(GoodputBucket::kDataWait, row.data_wait_seconds * static_cast<double>(steps));
    take(GoodputBucket::kWaitingForOthers, row.waiting_seconds);
    const int64_t stepping = time_ns - at_ns_ - paused;
    const int64_t each = stepping / std::max<int64_t>(1, steps);
    if (std::isnan(seconds) && covered == 0) seconds = static_cast<double>(each) / 1e9;
    free = TakeStall(free, steps, &ledger);
    Remember(each);
    const size_t segment = segments_ - 1;
    const bool wasted = segment < floors_.size() && row.step >= floors_[segment];
    amounts[static_cast<size_t>(wasted ? GoodputBucket::kWasted
                                       : GoodputBucket::kProductiveStep)] += free;
    (wasted ? ledger.wasted_steps : ledger.productive_steps) += static_cast<uint64_t>(steps);
    if (done_before) ledger.repeated_ns += free;
  }
  for (size_t i = 0; i < kGoodputBuckets; ++i) ledger.ns[i] += amounts[i];
  Sample(row, seconds, has_step_ && !falls_back);
  CountTokens(row, has_step_ && !falls_back);
  const bool rises = has_step_ && row.step > last_step_;
  LaySpans(before, StepBounds{rises ? last_step_ + 1 : row.step, row.step});
  at_ns_ = time_ns;
  has_step_ = true;
  last_step_ = row.step;
}

void LedgerMaker::EndRunning(const Amounts& covered, int64_t covered_until_ns, int64_t free_ns) {
  Ledger& ledger = of_spans_.back();
  if (IsStall(free_ns, 1)) {
    AddInProgress(TakeStall(free_ns, 1, &ledger));
    return;
  }
  // The step in progress may still turn out to be anything: it is counted when it is done. What
  // came before the end of a checkpoint, say, is decided.
  ledger.end_ns = covered_until_ns;
  AddInProgress(covered_until_ns - at_ns_ - Sum(covered));
}

void LedgerMaker::AddInProgress(int64_t ns) {
  Ledger& ledger = of_spans_.back();
  ledger[GoodputBucket::kProductiveStep] += ns;
  if (last_step_ < max_step_.value_or(last_step_)) ledger.repeated_ns += ns;
}

void LedgerMaker::EndSpan() {
  if (!open_) return;
  open_ = false;
  const size_t index = of_spans_.size() - 1;
  Ledger& ledger = of_spans_.back();
  const AttemptFacts& facts = attempts_[spans_[index].index];
  const Amounts before = ledger.ns;
  int64_t covered_until_ns = 0;
  Amounts amounts = TakePhases(at_ns_, ledger.end_ns, /*until_is_step=*/false, &covered_until_ns);
  if (has_step_) {
    const int64_t left_ns = ledger.end_ns - at_ns_ - Sum(amounts);
    TakeCarried(at_ns_, ledger.end_ns, left_ns, 1, &amounts);
    if (!placed_.empty()) covered_until_ns = std::max(covered_until_ns, placed_.back().end_ns);
  }
  for (size_t i = 0; i < kGoodputBuckets; ++i) ledger.ns[i] += amounts[i];
  const int64_t free = ledger.end_ns - at_ns_ - Sum(amounts);
  const bool newest = index + 1 == spans_.size();
  if (!has_step_) {
    ledger[GoodputBucket::kInitializing] += free;
  } else if (newest && !facts.ended) {
    EndRunning(amounts, covered_until_ns, free);
  } else {
    ledger[GoodputBucket::kOther] += facts.ended_well ? free : TakeStall(free, 1, &ledger);
  }
  LaySpans(before, std::nullopt);
}

void LedgerMaker::Finish() {
  EndSpan();
  if (of_spans_.empty()) return;
  total_.begin_ns = of_spans_.front().begin_ns;
  int64_t until = total_.begin_ns;
  for (const Ledger& ledger : of_spans_) {
    total_[GoodputBucket::kDown] += ledger.begin_ns - until;
    for (size_t i = 0; i < kGoodputBuckets; ++i) total_.ns[i] += ledger.ns[i];
    total_.productive_steps += ledger.productive_steps;
    total_.wasted_steps += ledger.wasted_steps;
    total_.rewinds += ledger.rewinds;
    total_.repeated_ns += ledger.repeated_ns;
    until = ledger.end_ns;
  }
  const AttemptSpan& newest = spans_.back();
  const int64_t silent_ns = now_ns_ - newest.end_ns;
  if (!attempts_[newest.index].ended && silent_ns > options_.silent_ns &&
      silent_ns <= options_.over_ns) {
    // The step that was in progress was never done.
    total_[GoodputBucket::kOther] += newest.end_ns - until;
    total_[GoodputBucket::kDown] += silent_ns;
    const uint32_t attempt = attempts_[newest.index].attempt;
    LaySpan(GoodputBucket::kOther, attempt, until, newest.end_ns - until);
    LaySpan(GoodputBucket::kDown, attempt, newest.end_ns, silent_ns);
    until = now_ns_;
  }
  total_.end_ns = until;
  bucket_spans_.Finish();
}

}  // namespace tacho::server::goodput
