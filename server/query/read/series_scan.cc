#include "server/query/read/series_scan.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::query {
namespace {

constexpr double kNsPerSecond = 1e9;

}  // namespace

double SecondsBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns)) /
         kNsPerSecond;
}

SeriesScan::SeriesScan(std::unique_ptr<storage::SeriesReader> reader,
                       const AttemptCondition& attempts, const QueryControl& control,
                       v1::CounterFunction counter)
    : reader_(std::move(reader)), attempts_(attempts), control_(control) {
  TACHO_CHECK(reader_ != nullptr);
  if (counter != v1::COUNTER_FUNCTION_UNSPECIFIED) growth_.emplace(counter);
}

absl::StatusOr<bool> SeriesScan::Next(const storage::Want& want, storage::Chunk* chunk) {
  if (next_.has_value()) {
    *chunk = *std::exchange(next_, std::nullopt);
    return true;
  }
  // Where a counter was reset is in its samples.
  if (growth_.has_value()) return ReadGrowth(chunk);
  if (!want.summary || attempts_.any()) return ReadAllowed(want, chunk);
  return ReadAllowed({.summary =
                          [this, &want](const storage::SampleSummary& summary) {
                            return attempts_.AllowsAll(summary) && want.summary(summary);
                          },
                      .step_bounds = want.step_bounds || attempts_.needs_step_bounds()},
                     chunk);
}

absl::StatusOr<bool> SeriesScan::ReadAllowed(const storage::Want& want, storage::Chunk* chunk) {
  for (;;) {
    TACHO_RETURN_IF_ERROR(control_.Check());
    TACHO_ASSIGN_OR_RETURN(const bool more, reader_->Next(want, chunk));
    if (!more) return false;
    control_.CountRead(chunk->is_summary() ? chunk->summary().count : chunk->samples().size());
    if (chunk->is_summary() || attempts_.Filter(chunk)) return true;
  }
}

absl::StatusOr<bool> SeriesScan::ReadGrowth(storage::Chunk* chunk) {
  for (bool more = true; more;) {
    TACHO_ASSIGN_OR_RETURN(more, ReadAllowed({}, chunk));
    if (more) {
      growth_->Apply(chunk);
    } else {
      growth_->Finish(chunk);
    }
    if (chunk->samples().size() > 0) return true;
  }
  return false;
}

absl::StatusOr<std::optional<AxisExtent>> SeriesScan::FindTimes() {
  TACHO_CHECK(!next_.has_value());
  TACHO_RETURN_IF_ERROR(control_.Check());
  TACHO_ASSIGN_OR_RETURN(const auto ends, reader_->FindEnds());
  if (!ends.has_value()) return AxisExtent();
  const auto& [first, last] = *ends;
  if (!attempts_.AllowsRow(last.attempt, last.step)) return std::nullopt;
  if (!growth_.has_value() && attempts_.AllowsRow(first.attempt, first.step)) {
    return AxisExtent{first.time_ns, last.time_ns};
  }
  // The first growth is that of the second sample; the last is that of the last.
  storage::Chunk chunk;
  TACHO_ASSIGN_OR_RETURN(const bool any, Next({}, &chunk));
  if (!any) return AxisExtent();
  const AxisExtent extent = {chunk.first_time_ns(), last.time_ns};
  next_ = std::move(chunk);
  return extent;
}

absl::StatusOr<bool> HasSample(const storage::Store& store, const storage::SeriesPtr& series,
                               const AttemptCondition& attempts, const QueryControl& control) {
  if (attempts.any()) return true;
  storage::ReadOptions read;
  read.attempt = attempts.only();
  storage::Chunk chunk;
  return SeriesScan(store.Read(series, read), attempts, control)
      .Next(storage::AnySummary(), &chunk);
}

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

void CounterGrowth::Apply(storage::Chunk* chunk) {
  storage::SampleBlock grown;
  const storage::SampleView& samples = chunk->samples();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample sample = SampleOf(samples, i);
    if (newest_.has_value() && newest_->time_ns != sample.time_ns) Emit(&grown);
    newest_ = sample;
  }
  *chunk->block() = std::move(grown);
  chunk->ShowBlock();
}

void CounterGrowth::Finish(storage::Chunk* chunk) {
  chunk->block()->clear();
  Emit(chunk->block());
  chunk->ShowBlock();
}

}  // namespace tacho::server::query
