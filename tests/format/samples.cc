#include "tests/format/samples.h"

#include <algorithm>
#include <optional>

#include "tests/format/integer_column.h"
#include "tests/format/statistics.h"
#include "tests/format/value_column.h"

namespace format_page {
namespace {

constexpr int64_t kDayNs = 86'400'000'000'000;

// What the journal knows of a row is in `state` only once it is sealed.
void AddRow(const Layout& layout, int64_t time, std::optional<int64_t> step, Job* job) {
  job->attempts[layout.attempt].extent.Include(time, step);
  const Series& series = job->series.at(layout.series.front());
  Task& task = job->tasks[{series.task, series.host}];
  if (time >= task.extent.last_time) task.attempt = layout.attempt;
  task.extent.Include(time, step);
  job->totals.extent.Include(time, step);
}

bool SameSpan(uint64_t code, uint64_t span) {
  for (uint64_t u = code % 4; u > 0; --u) {
    if (span % 1000 != 0) return false;
    span /= 1000;
  }
  return span == code / 4;
}

}  // namespace

void AddSample(const SampleKey& key, const Sample& sample, Samples* samples) {
  if (sample.bits == kStaleMarker) return;
  const auto [place, is_new] = samples->try_emplace(key, sample);
  if (!is_new && place->second.position <= sample.position) place->second = sample;
}

void OpenRows::ReadEntry(uint64_t position, Bytes entry, Records* records) {
  const auto job = records->jobs.find(static_cast<uint32_t>(entry.Varint()));
  if (job == records->jobs.end()) return;  // It has expired.
  const uint64_t layout_id = entry.Varint();
  const auto found = job->second.layouts.find(layout_id);
  if (found == job->second.layouts.end()) return entry.Fail("a layout that there is not");
  const Layout& layout = found->second;
  const uint64_t rows = entry.Count();
  const uint64_t columns = entry.Count();
  const bool has_steps = entry.Byte() == 1;
  if (columns != layout.series.size() || has_steps != layout.has_steps) {
    return entry.Fail("rows that do not fit their layout");
  }
  std::vector<int64_t> times;
  std::vector<int64_t> steps(rows, kNoStep);
  for (uint64_t i = 0; i < rows; ++i) times.push_back(static_cast<int64_t>(entry.Little(8)));
  for (uint64_t i = 0; i < rows && has_steps; ++i) {
    steps[i] = static_cast<int64_t>(entry.Little(8));
  }
  if (position <= layout.sealed) {
    entry.Met("journal: sealed entry");
    entry.Take(rows * columns * 8);
    return entry.ExpectEnd();
  }
  entry.Met("journal: open entry");
  OfLayout& open = layouts_[layout_id];
  open.last_position = position;
  for (uint64_t i = 0; i < rows && entry.ok(); ++i) {
    const std::optional<int64_t> step =
        steps[i] == kNoStep ? std::nullopt : std::optional<int64_t>(steps[i]);
    AddRow(layout, times[i], step, &job->second);
    for (const uint64_t series : layout.series) {
      open.values.push_back({series, {times[i], layout.attempt, steps[i]}, entry.Little(8)});
    }
  }
  entry.ExpectEnd();
}

void OpenRows::AddTo(SamplesOfSeries* samples) const {
  for (const auto& [id, open] : layouts_) {
    for (const Value& value : open.values) {
      AddSample(value.key, {open.last_position, value.bits}, &(*samples)[value.series]);
    }
  }
}

void Day::ReadRecord(Bytes key, Bytes value, SamplesOfSeries* samples) {
  const uint8_t kind = key.Byte();
  if (kind == 'T') {
    ReadTimes(&key, &value);
  } else if (kind == 'V') {
    ReadValueColumn(&key, &value, samples);
  } else {
    key.Fail("an unknown kind of record");
  }
  key.ExpectEnd();
  value.ExpectEnd();
}

void Day::ReadTimes(Bytes* key, Bytes* value) {
  FrameKey id;
  id.job = static_cast<uint32_t>(key->Big(4));
  id.layout = key->Big(8);
  id.time = key->KeyTime();
  id.position = key->Big(8);
  Frame& frame = frames_[id];
  const uint64_t rows = value->Varint();
  frame.attempt = static_cast<uint32_t>(value->Varint());

  Bytes times = value->Part(value->Varint());
  frame.times = ReadIntegers(&times, rows);
  times.ExpectEnd();
  Bytes steps = value->Part(value->Varint());
  const bool has_steps = !steps.empty();
  frame.steps = has_steps ? ReadIntegers(&steps, rows) : std::vector<int64_t>(rows, kNoStep);
  steps.ExpectEnd();
  if (!times.ok() || !steps.ok() || rows == 0) return value->Fail("no times");

  if (has_steps) {
    value->Met("frames: steps");
    if (value->Zigzag() != frame.steps.front()) value->Fail("another first step");
    if (value->Zigzag() != frame.steps.back()) value->Fail("another last step");
  } else {
    value->Met("frames: no steps");
  }
  const auto job = records_->jobs.find(id.job);
  if (job == records_->jobs.end() || !job->second.layouts.contains(id.layout)) {
    return value->Fail("a layout that there is not");
  }
  const Layout& layout = job->second.layouts.at(id.layout);
  if (layout.attempt != frame.attempt || layout.has_steps != has_steps) {
    value->Fail("a frame that does not fit its layout");
  }
  if (frame.times.front() != id.time) value->Fail("another first time");
  for (uint64_t i = 0; i < rows; ++i) {
    const int64_t time = frame.times[i];
    const int64_t day = time / kDayNs - (time % kDayNs < 0 ? 1 : 0);
    if (day != number_) value->Fail("a row of another day");
    if (i > 0 &&
        std::pair(frame.times[i - 1], frame.steps[i - 1]) >= std::pair(time, frame.steps[i])) {
      value->Fail("rows that do not ascend");
    }
  }
}

void Day::ReadValueColumn(Bytes* key, Bytes* value, SamplesOfSeries* samples) {
  FrameKey id;
  id.job = static_cast<uint32_t>(key->Big(4));
  const uint32_t metric = static_cast<uint32_t>(key->Big(4));
  const uint64_t series = key->Big(8);
  id.time = key->KeyTime();
  id.position = key->Big(8);
  id.layout = value->Varint();
  const auto found = frames_.find(id);
  if (found == frames_.end()) return key->Fail("a column without a frame");
  const Frame& frame = found->second;
  const Job& job = records_->jobs.at(id.job);
  if (!job.series.contains(series) || job.series.at(series).metric != metric) {
    return key->Fail("a series that there is not");
  }
  const std::vector<uint64_t>& of_layout = job.layouts.at(id.layout).series;
  if (std::find(of_layout.begin(), of_layout.end(), series) == of_layout.end()) {
    key->Fail("a series that its layout does not have");
  }

  const uint64_t rows = value->Varint();
  if (rows != frame.times.size()) return value->Fail("another number of rows than its frame");
  const uint64_t span =
      static_cast<uint64_t>(frame.times.back()) - static_cast<uint64_t>(frame.times.front());
  if (!SameSpan(value->Varint(), span)) value->Fail("another span than its frame");
  const std::optional<Statistics> stored = ReadStatistics(value, rows);
  const std::vector<uint64_t> values = ReadValues(value, rows);
  if (!value->ok()) return;
  const Statistics computed = StatisticsOf(values);
  if (computed.stale == rows) value->Fail("a column without a value");
  if (stored.has_value()) {
    const std::string difference = Difference(*stored, computed);
    if (!difference.empty()) value->Fail("statistics with another " + difference);
  }
  value->Met("columns: rows " + std::to_string(rows));
  for (uint64_t i = 0; i < rows; ++i) {
    AddSample({frame.times[i], frame.attempt, frame.steps[i]}, {id.position, values[i]},
              &(*samples)[series]);
  }
}

}  // namespace format_page
