// Frames hold rows that came together, so most runs are in order and do not overlap; those are
// passed on whole. Only the others are sorted or merged.
#include "storage/columns/sample_run.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

// Moves sample `from` to `to` of the same block.
void Move(SampleBlock* samples, size_t from, size_t to) {
  samples->times[to] = samples->times[from];
  samples->steps[to] = samples->steps[from];
  samples->attempts[to] = samples->attempts[from];
  samples->values[to] = samples->values[from];
}

bool Wanted(const SampleBlock& samples, size_t i, const ReadOptions& options) {
  if (IsStaleMarker(samples.values[i])) return false;
  const int64_t time = samples.times[i];
  if (time < options.begin_ns) return false;
  if (time >= options.end_ns && options.end_ns != INT64_MAX) return false;
  if (options.attempt && samples.attempts[i] != *options.attempt) return false;
  const int64_t step = samples.steps[i];
  if ((options.first_step || options.last_step) && step == kNoStep) return false;
  if (options.first_step && step < *options.first_step) return false;
  return !options.last_step || step <= *options.last_step;
}

auto IdentityOf(const SampleBlock& samples, size_t i) {
  return std::tie(samples.times[i], samples.attempts[i], samples.steps[i]);
}

bool IsStrictlyAscending(const SampleBlock& samples) {
  for (size_t i = 1; i < samples.size(); ++i) {
    if (samples.times[i - 1] < samples.times[i]) continue;
    if (IdentityOf(samples, i - 1) >= IdentityOf(samples, i)) return false;
  }
  return true;
}

// The usual case, quickly: true only if nothing is to be left out or moved.
bool AreAllWanted(const SampleBlock& samples, const ReadOptions& options) {
  if (samples.size() == 0) return true;
  if (options.attempt || options.first_step || options.last_step) return false;
  size_t disorder = 0;  // Counted without a branch, which is several samples an instruction.
  for (size_t i = 1; i < samples.size(); ++i) {
    disorder += samples.times[i - 1] >= samples.times[i] ? 1 : 0;
  }
  for (const double value : samples.values) {
    disorder += IsStaleMarker(value) ? 1 : 0;
  }
  if (disorder > 0) return false;
  return samples.times.front() >= options.begin_ns &&
         (options.end_ns == INT64_MAX || samples.times.back() < options.end_ns);
}

void Append(const SampleBlock& from, size_t begin, size_t end, SampleBlock* to) {
  const auto append = [&](const auto& source, auto* target) {
    target->insert(target->end(), source.begin() + static_cast<ptrdiff_t>(begin),
                   source.begin() + static_cast<ptrdiff_t>(end));
  };
  append(from.times, &to->times);
  append(from.steps, &to->steps);
  append(from.attempts, &to->attempts);
  append(from.values, &to->values);
}

// Sorted, and of each triple only the last, in the order that `before` gives beyond the identity.
template <typename Before>
SampleBlock SortedUnique(const SampleBlock& samples, const Before& before) {
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto left = IdentityOf(samples, a);
    const auto right = IdentityOf(samples, b);
    return left != right ? left < right : before(a, b);
  });
  SampleBlock out;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + 1 < order.size() &&
        IdentityOf(samples, order[i]) == IdentityOf(samples, order[i + 1])) {
      continue;
    }
    Append(samples, order[i], order[i] + 1, &out);
  }
  return out;
}

}  // namespace

SampleRun::SampleRun(FramePosition position, SampleBlock samples, const ReadOptions& options)
    : position_(position), samples_(std::move(samples)) {
  if (AreAllWanted(samples_, options)) return;
  size_t kept = 0;
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (!Wanted(samples_, i, options)) continue;
    if (kept != i) Move(&samples_, i, kept);
    ++kept;
  }
  samples_.resize(kept);
  if (!IsStrictlyAscending(samples_)) {
    samples_ = SortedUnique(samples_, [](size_t a, size_t b) { return a < b; });
  }
}

SampleEnds SampleRun::ends() const {
  TACHO_CHECK(!empty());
  const auto end = [this](size_t i) {
    return SampleEnds::End{samples_.times[i], samples_.steps[i], samples_.attempts[i]};
  };
  return {.first = end(next_), .last = end(samples_.size() - 1)};
}

size_t SampleRun::CountBefore(int64_t end_ns) const {
  if (end_ns == INT64_MAX) return samples_.size() - next_;
  const auto from = samples_.times.begin() + static_cast<ptrdiff_t>(next_);
  return static_cast<size_t>(std::lower_bound(from, samples_.times.end(), end_ns) - from);
}

void SampleRun::Take(size_t count, SampleBlock* out) {
  TACHO_CHECK(count <= samples_.size() - next_);
  if (next_ == 0 && count == samples_.size() && out->size() == 0) {
    std::swap(*out, samples_);
    samples_.clear();
    return;
  }
  Append(samples_, next_, next_ + count, out);
  next_ += count;
}

bool TakeMerged(std::vector<SampleRun>* runs, int64_t end_ns, SampleBlock* out) {
  out->clear();
  const auto adds = [end_ns](const SampleRun& run) { return run.CountBefore(end_ns) > 0; };
  // Usually there is one run, and nothing to merge.
  const bool merge = std::count_if(runs->begin(), runs->end(), adds) > 1;
  std::vector<FramePosition> positions;  // One a sample.
  for (SampleRun& run : *runs) {
    const size_t count = run.CountBefore(end_ns);
    if (count == 0) continue;
    if (merge) positions.insert(positions.end(), count, run.position());
    run.Take(count, out);
  }
  std::erase_if(*runs, [](const SampleRun& run) { return run.empty(); });
  if (merge) {
    // Samples with the same position are from pieces of a layout's open rows; later pieces came
    // later.
    *out = SortedUnique(*out, [&](size_t a, size_t b) {
      return positions[a] != positions[b] ? positions[a] < positions[b] : a < b;
    });
  }
  return out->size() > 0;
}

}  // namespace tacho::storage
