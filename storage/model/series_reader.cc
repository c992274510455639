#include "storage/model/series_reader.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

// Counted without a branch, which is several rows an instruction.
bool AreAllOf(uint32_t attempt, std::span<const uint32_t> attempts) {
  size_t others = 0;
  for (const uint32_t one : attempts) others += one != attempt ? 1 : 0;
  return others == 0;
}

}  // namespace

void SampleBlock::clear() {
  times.clear();
  steps.clear();
  attempts.clear();
  values.clear();
}

void SampleBlock::resize(size_t size) {
  times.resize(size);
  steps.resize(size);
  attempts.resize(size);
  values.resize(size);
}

Want AnySummary() {
  return {.summary = [](const SampleSummary&) { return true; }};
}

const SampleSummary& Chunk::summary() const {
  TACHO_CHECK(is_summary_);
  return summary_;
}

const SampleView& Chunk::samples() const {
  TACHO_CHECK(!is_summary_);
  return samples_;
}

int64_t Chunk::first_time_ns() const {
  return is_summary_ ? summary_.first_time_ns : samples_.columns.times.front();
}

int64_t Chunk::last_time_ns() const {
  return is_summary_ ? summary_.last_time_ns : samples_.columns.times.back();
}

void Chunk::Set(const SampleSummary& summary) {
  is_summary_ = true;
  shows_block_ = false;
  summary_ = summary;
  samples_ = {};
}

void Chunk::Set(SampleView samples) {
  is_summary_ = false;
  shows_block_ = false;
  samples_ = std::move(samples);
}

void Chunk::ShowBlock() {
  TACHO_CHECK(block_.steps.size() == block_.size() && block_.attempts.size() == block_.size() &&
              block_.values.size() == block_.size());
  is_summary_ = false;
  shows_block_ = true;
  samples_ = {.columns = block_.columns()};
  if (block_.size() == 0) return;
  samples_.attempt = block_.attempts.front();
  if (!AreAllOf(samples_.attempt, block_.attempts)) samples_.attempts = block_.attempts;
}

void Chunk::CopyToBlock() {
  TACHO_CHECK(!is_summary_);
  if (std::exchange(shows_block_, true)) return;
  const SampleColumns& columns = samples_.columns;
  block_.times.assign(columns.times.begin(), columns.times.end());
  block_.steps.assign(columns.steps.begin(), columns.steps.end());
  block_.values.assign(columns.values.begin(), columns.values.end());
  block_.attempts.assign(samples_.attempts.begin(), samples_.attempts.end());
  block_.attempts.resize(block_.size(), samples_.attempt);
  ShowBlock();
}

LatestSample LastOf(const SeriesPtr& series, const Chunk& chunk) {
  if (chunk.is_summary()) {
    const SampleSummary& all = chunk.summary();
    return {series, all.last_time_ns, all.last_step, all.attempt, all.last};
  }
  const SampleView& samples = chunk.samples();
  TACHO_CHECK(samples.size() > 0);
  const auto& [times, steps, values] = samples.columns;
  return {series, times.back(), steps.back(), samples.AttemptOf(times.size() - 1), values.back()};
}

void SampleEnds::Include(const SampleEnds& other) {
  if (other.first.time_ns < first.time_ns) first = other.first;
  if (other.last.time_ns > last.time_ns) last = other.last;
}

SeriesReader::~SeriesReader() = default;

void SeriesReader::Own(std::unique_ptr<ReadView> view) { view_ = std::move(view); }

}  // namespace tacho::storage
