#include "server/conditions/window/task_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/phases/phases.h"

namespace tacho::server::conditions {
namespace {

// Limits come from minutes, so it does not matter what explains an interval this short.
constexpr int64_t kCountsAtOnceNs = 1'000'000'000;
constexpr double kShortest = 1e-3;  // Seconds; shorter intervals share a bucket.
constexpr double kBucketRatio = 1.1;

uint16_t BucketOf(double seconds) {
  static const double kLogRatio = std::log(kBucketRatio);
  if (!(seconds > kShortest)) return 0;
  return static_cast<uint16_t>(std::min(1e3, 1 + std::log(seconds / kShortest) / kLogRatio));
}

}  // namespace

void RowPace::Note(int64_t time_ns, int64_t step) {
  if (last_.has_value()) {
    if (time_ns <= last_->time_ns || step == last_->step) return;
    // Training that went back makes no interval: it restored a checkpoint.
    if (step > last_->step) {
      if (time_ns - last_->time_ns <= kCountsAtOnceNs) {
        Count(time_ns - last_->time_ns);
      } else {
        if (waiting_.size() >= kMaxWaiting) {
          Count(waiting_.front().to_ns - waiting_.front().from_ns);
          waiting_.erase(waiting_.begin());
        }
        waiting_.push_back({last_->time_ns, time_ns});
      }
    }
  }
  last_ = {time_ns, step};
  newest_ns_ = time_ns;
}

void RowPace::Count(int64_t ns) {
  if (newest_count_ >= kGeneration) {
    before_ = std::exchange(newest_, {});
    before_count_ = std::exchange(newest_count_, 0);
  }
  const double seconds = static_cast<double>(ns) / 1e9;
  const uint16_t number = BucketOf(seconds);
  auto bucket = std::find_if(newest_.begin(), newest_.end(),
                             [&](const Bucket& one) { return one.number == number; });
  if (bucket == newest_.end()) bucket = newest_.insert(bucket, Bucket{.number = number});
  ++bucket->count;
  bucket->longest = std::max(bucket->longest, static_cast<float>(seconds));
  ++newest_count_;
}

void RowPace::Settle(int64_t until_ns, CoveredFn covered) {
  size_t settled = 0;
  for (; settled < waiting_.size() && waiting_[settled].to_ns <= until_ns; ++settled) {
    const Interval& interval = waiting_[settled];
    const int64_t length_ns = interval.to_ns - interval.from_ns;
    const int64_t covered_ns = std::min(covered(interval.from_ns, interval.to_ns), length_ns);
    if (!phases::PhaseCover::Explains(covered_ns, length_ns)) Count(length_ns);
    NotePause({interval.to_ns, static_cast<double>(length_ns - covered_ns) / 1e9});
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(settled));
}

void RowPace::NotePause(const Pause& pause) {
  if (pause.seconds * 1e9 <= kCountsAtOnceNs) return;
  std::erase_if(pauses_,
                [&](const Pause& old) { return old.end_ns < pause.end_ns - kPausesForNs; });
  if (pauses_.size() < kMaxPauses) return pauses_.push_back(pause);
  const auto shortest =
      std::min_element(pauses_.begin(), pauses_.end(),
                       [](const Pause& a, const Pause& b) { return a.seconds < b.seconds; });
  if (pause.seconds > shortest->seconds) *shortest = pause;
}

void RowPace::AppendTo(std::vector<CountedInterval>* out) const {
  for (const std::vector<Bucket>* buckets : {&newest_, &before_}) {
    for (const Bucket& bucket : *buckets) out->push_back({bucket.longest, bucket.count});
  }
}

RowPace& TaskPace::Of(uint64_t source) {
  for (Source& known : sources_) {
    if (known.id == source) return known.pace;
  }
  if (sources_.size() < kMaxSources) return sources_.emplace_back(Source{source, {}}).pace;
  const auto quiet = std::min_element(
      sources_.begin(), sources_.end(),
      [](const Source& a, const Source& b) { return a.pace.newest_ns() < b.pace.newest_ns(); });
  *quiet = {source, {}};
  return quiet->pace;
}

void TaskPace::TakeStored(RowPace pace) {
  RowPace& stored = Of(kStored);
  if (pace.intervals() > stored.intervals()) stored = std::move(pace);
}

void TaskPace::Break() {
  for (Source& source : sources_) source.pace.Break();
}

void TaskPace::Settle(int64_t until_ns, CoveredFn covered) {
  for (Source& source : sources_) source.pace.Settle(until_ns, covered);
}

bool TaskPace::waits() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.pace.waits(); });
}

const RowPace* TaskPace::Best() const {
  const RowPace* best = nullptr;
  const auto rank = [](const RowPace& pace) {
    return std::make_pair(std::min(pace.intervals(), RowPace::kGeneration), pace.newest_ns());
  };
  for (const Source& source : sources_) {
    if (source.pace.intervals() == 0) continue;
    if (best == nullptr || rank(source.pace) > rank(*best)) best = &source.pace;
  }
  return best;
}

std::vector<Pause> TaskPace::Pauses() const {
  const RowPace* const best = Best();
  if (best == nullptr) return {};
  std::vector<Pause> all = best->pauses();
  for (const Source& source : sources_) {
    if (source.id != kStored || &source.pace == best) continue;
    all.insert(all.end(), source.pace.pauses().begin(), source.pace.pauses().end());
  }
  return all;
}

double QuantileOf(std::vector<CountedInterval> intervals, double q) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const CountedInterval& a, const CountedInterval& b) { return a.seconds < b.seconds; });
  uint64_t all = 0;
  for (const CountedInterval& interval : intervals) all += interval.count;
  if (all == 0) return 0;
  const auto ranked = [&](uint64_t rank) {
    for (const CountedInterval& interval : intervals) {
      if (rank < interval.count) return interval.seconds;
      rank -= interval.count;
    }
    return intervals.back().seconds;
  };
  const double rank = q * static_cast<double>(all - 1);
  const double low = ranked(static_cast<uint64_t>(rank));
  const double high = ranked(static_cast<uint64_t>(std::ceil(rank)));
  return low + (high - low) * (rank - std::floor(rank));
}

}  // namespace tacho::server::conditions
