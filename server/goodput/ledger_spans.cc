#include "server/goodput/ledger_spans.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::goodput {
namespace {

// The order in which amounts without a place are laid out.
constexpr GoodputBucket kLaidOut[] = {
    GoodputBucket::kInitializing, GoodputBucket::kCompiling,      GoodputBucket::kRestoring,
    GoodputBucket::kCheckpoint,   GoodputBucket::kEvaluation,     GoodputBucket::kDataWait,
    GoodputBucket::kWasted,       GoodputBucket::kProductiveStep, GoodputBucket::kWaitingForOthers,
    GoodputBucket::kStalled,      GoodputBucket::kOther,          GoodputBucket::kDown};
static_assert(std::size(kLaidOut) == kGoodputBuckets);

bool HasSteps(GoodputBucket bucket) {
  return bucket == GoodputBucket::kProductiveStep || bucket == GoodputBucket::kWasted;
}

bool AreOne(const BucketSpan& a, const BucketSpan& b) {
  return a.bucket == b.bucket && a.attempt == b.attempt;
}

// `to` comes right before or right after `from`, and keeps its bucket and attempt.
void Absorb(const BucketSpan& from, BucketSpan* to) {
  to->begin_ns = std::min(to->begin_ns, from.begin_ns);
  to->end_ns = std::max(to->end_ns, from.end_ns);
  if (!from.steps.has_value()) return;
  if (!to->steps.has_value()) to->steps = from.steps;
  to->steps->first = std::min(to->steps->first, from.steps->first);
  to->steps->last = std::max(to->steps->last, from.steps->last);
}

// Spans as a list of which any may be taken out, the shortest first.
class SpanJoiner {
 public:
  explicit SpanJoiner(std::vector<BucketSpan>* spans) : spans_(*spans), links_(spans->size()) {
    for (size_t i = 0; i < spans_.size(); ++i) {
      links_[i] = {i == 0 ? kNone : i - 1, i + 1 == spans_.size() ? kNone : i + 1, true};
      shortest_.emplace(spans_[i].ns(), i);
    }
  }

  size_t left() const { return spans_.size() - gone_; }

  void JoinOne() {
    const size_t at = TakeShortest();
    const auto [before, after, there] = links_[at];
    const bool into_before =
        after == kNone || (before != kNone && spans_[before].ns() >= spans_[after].ns());
    const size_t into = into_before ? before : after;
    Move(at, into);
    // Its neighbour on the other side may go on with the same bucket.
    const size_t other = into_before ? after : before;
    if (other != kNone && AreOne(spans_[into], spans_[other])) Move(other, into);
    shortest_.emplace(spans_[into].ns(), into);
  }

  void RemoveGone() {
    size_t kept = 0;
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (links_[i].there) spans_[kept++] = spans_[i];
    }
    spans_.resize(kept);
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Link {
    size_t before = kNone;
    size_t after = kNone;
    bool there = false;
  };

  size_t TakeShortest() {
    for (;;) {
      TACHO_CHECK(!shortest_.empty());
      const auto [ns, at] = shortest_.top();
      shortest_.pop();
      if (links_[at].there && spans_[at].ns() == ns) return at;  // Else it is gone, or has grown.
    }
  }

  void Move(size_t from, size_t into) {
    Absorb(spans_[from], &spans_[into]);
    Link& link = links_[from];
    if (link.before != kNone) links_[link.before].after = link.after;
    if (link.after != kNone) links_[link.after].before = link.before;
    link.there = false;
    ++gone_;
  }

  std::vector<BucketSpan>& spans_;
  std::vector<Link> links_;
  std::priority_queue<std::pair<int64_t, size_t>, std::vector<std::pair<int64_t, size_t>>,
                      std::greater<>>
      shortest_;  // Equal ones from the first on.
  size_t gone_ = 0;
};

}  // namespace

uint64_t JoinShortest(size_t most, std::vector<BucketSpan>* spans) {
  TACHO_CHECK(most > 0);
  if (spans->size() <= most) return 0;
  SpanJoiner joiner(spans);
  uint64_t joined = 0;
  for (; joiner.left() > most; ++joined) joiner.JoinOne();
  joiner.RemoveGone();
  return joined;
}

void LedgerSpans::Lay(uint32_t attempt, int64_t from_ns, const BucketAmounts& amounts,
                      std::span<const BucketSpan> placed, std::optional<StepBounds> steps) {
  if (most_ == 0) return;
  BucketAmounts left = amounts;
  for (const BucketSpan& one : placed) left[static_cast<size_t>(one.bucket)] -= one.ns();
  size_t next = 0;  // In kLaidOut.
  int64_t at_ns = from_ns;
  // Lays out what is left, but no more than that.
  const auto fill = [&](int64_t room_ns) {
    while (room_ns > 0 && next < std::size(kLaidOut)) {
      const GoodputBucket bucket = kLaidOut[next];
      int64_t& amount = left[static_cast<size_t>(bucket)];
      const int64_t ns = std::min(amount, room_ns);
      Add({bucket, attempt, at_ns, at_ns + ns, HasSteps(bucket) ? steps : std::nullopt});
      amount -= ns;
      room_ns -= ns;
      at_ns += ns;
      if (amount == 0) ++next;
    }
  };
  for (const BucketSpan& one : placed) {
    fill(one.begin_ns - at_ns);
    TACHO_CHECK(at_ns == one.begin_ns);
    Add({one.bucket, attempt, one.begin_ns, one.end_ns, std::nullopt});
    at_ns = one.end_ns;
  }
  fill(INT64_MAX);
}

void LedgerSpans::Add(const BucketSpan& span) {
  if (span.ns() <= 0) return;
  if (!spans_.empty() && AreOne(spans_.back(), span)) return Absorb(span, &spans_.back());
  if (spans_.size() == kHeldSpans) joined_ += JoinShortest(kHeldSpans / 2, &spans_);
  if (!spans_.empty() && AreOne(spans_.back(), span)) return Absorb(span, &spans_.back());
  spans_.push_back(span);
}

void LedgerSpans::Finish() {
  if (most_ > 0) joined_ += JoinShortest(most_, &spans_);
}

}  // namespace tacho::server::goodput
