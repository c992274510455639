#include "server/query/read/counter.h"

#include <utility>

namespace tacho::server::query {
namespace {

constexpr double kNsPerSecond = 1e9;

// Unsigned, so that all of int64 fits.
double SecondsBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns)) /
         kNsPerSecond;
}

}  // namespace

double CounterGrowth::Growth(const Sample& from, const Sample& to) const {
  const bool reset = to.attempt != from.attempt || to.value < from.value;
  const double growth = reset ? to.value : to.value - from.value;
  if (function_ == v1::COUNTER_FUNCTION_INCREASE) return growth;
  return growth / SecondsBetween(from.time_ns, to.time_ns);
}

void CounterGrowth::Emit(storage::SampleBlock* block) {
  if (!newest_.has_value()) return;
  if (before_.has_value()) {
    block->times.push_back(newest_->time_ns);
    block->steps.push_back(newest_->step);
    block->attempts.push_back(newest_->attempt);
    block->values.push_back(Growth(*before_, *newest_));
  }
  before_ = std::exchange(newest_, std::nullopt);
}

void CounterGrowth::Apply(storage::SampleBlock* block) {
  storage::SampleBlock grown;
  for (size_t i = 0; i < block->size(); ++i) {
    const Sample sample = SampleOf(*block, i);
    if (newest_.has_value() && newest_->time_ns != sample.time_ns) Emit(&grown);
    newest_ = sample;
  }
  *block = std::move(grown);
}

void CounterGrowth::Finish(storage::SampleBlock* block) {
  block->clear();
  Emit(block);
}

}  // namespace tacho::server::query
