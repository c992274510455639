#include "storage/head.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tacho::storage {
namespace {

void AppendIntegers(absl::string_view bytes, std::vector<int64_t>* out) {
  const size_t before = out->size();
  out->resize(before + bytes.size() / sizeof(int64_t));
  std::memcpy(out->data() + before, bytes.data(), bytes.size());
}

void AppendDoubles(absl::string_view bytes, std::vector<double>* out) {
  const size_t before = out->size();
  out->resize(before + bytes.size() / sizeof(double));
  std::memcpy(out->data() + before, bytes.data(), bytes.size());
}

// `rows` of a frame behind those of another.
void AppendRows(const FrameRows& rows, FrameRows* out) {
  out->times.insert(out->times.end(), rows.times.begin(), rows.times.end());
  out->steps.insert(out->steps.end(), rows.steps.begin(), rows.steps.end());
  out->values.insert(out->values.end(), rows.values.begin(), rows.values.end());
}

}  // namespace

Head::OpenFrame* Head::FindOrAdd(const LayoutPtr& layout) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<OpenFrame>& frame = frames_[layout->id];
  if (frame == nullptr) {
    frame = std::make_shared<OpenFrame>(layout);
    sources_[layout->series.front()->source].push_back(frame);
  }
  return frame.get();  // Only RemoveJob() removes frames, on the thread that appends.
}

void Head::OpenFrame::TakeLatest(const RowsEntry& entry, absl::Time now) {
  const double stale = std::bit_cast<double>(kStaleMarkerBits);
  latest_values.resize(entry.columns, stale);
  latest_times.resize(entry.columns, INT64_MIN);
  latest_received.resize(entry.columns, absl::InfinitePast());
  std::optional<size_t> newest;
  for (size_t row = 0; row < entry.rows; ++row) {
    if (entry.Time(row) < latest_time) continue;
    latest_time = entry.Time(row);
    newest = row;
  }
  if (!newest) return;
  latest_step = entry.Step(*newest);
  received = now;
  // Most columns have a value in the newest row; for the others the rows before it are searched.
  for (size_t column = 0; column < entry.columns; ++column) {
    for (size_t row = *newest + 1; row-- > 0;) {
      uint64_t bits = 0;
      std::memcpy(&bits, entry.values.data() + (row * entry.columns + column) * sizeof(bits),
                  sizeof(bits));
      if (bits == kStaleMarkerBits || entry.Time(row) < latest_times[column]) continue;
      std::memcpy(&latest_values[column], &bits, sizeof(bits));
      latest_times[column] = entry.Time(row);
      latest_received[column] = now;
      break;
    }
  }
}

void Head::Append(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position,
                  absl::Time now) {
  OpenFrame* const frame = FindOrAdd(layout);
  {
    absl::MutexLock lock(&frame->mutex);
    if (frame->rows.size() == 0) {
      frame->first_position = position;
      frame->opened = now;
    }
    frame->last_position = position;
    AppendIntegers(entry.times, &frame->rows.times);
    AppendIntegers(entry.steps, &frame->rows.steps);
    AppendDoubles(entry.values, &frame->rows.values);
    frame->TakeLatest(entry, now);
    open_rows_ += entry.rows;
    open_values_ += entry.rows * entry.columns;
    longest_ = std::max<size_t>(longest_, frame->rows.size());
  }
  applied_position_ = position;
}

std::vector<Head::Sealing> Head::TakeForSealing(size_t min_rows, absl::Time opened_before,
                                                size_t max_values) {
  longest_ = 0;
  std::vector<Sealing> taken;
  size_t values = 0;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, frame] : frames_) {
    absl::MutexLock frame_lock(&frame->mutex);
    if (frame->rows.size() == 0 || frame->sealing != nullptr) continue;
    if (frame->rows.size() < min_rows && frame->opened >= opened_before) continue;
    if (!taken.empty() && values + frame->rows.values.size() > max_values) {
      // Left for the next call, which is to come at once.
      longest_ = std::max<size_t>(longest_, frame->rows.size());
      continue;
    }
    values += frame->rows.values.size();
    frame->sealing = std::make_shared<const FrameRows>(std::exchange(frame->rows, {}));
    frame->sealing_first_position = frame->first_position;
    frame->sealing_last_position = frame->last_position;
    taken.push_back({frame->layout, frame->sealing, frame->last_position});
  }
  return taken;
}

void Head::FinishSealing(const std::vector<Sealing>& sealed) {
  absl::MutexLock lock(&mutex_);
  for (const Sealing& sealing : sealed) {
    open_rows_ -= sealing.rows->size();
    open_values_ -= sealing.rows->values.size();
    const auto found = frames_.find(sealing.layout->id);
    if (found == frames_.end()) continue;
    absl::MutexLock frame_lock(&found->second->mutex);
    found->second->sealing = nullptr;
  }
}

void Head::ReturnFromSealing(const std::vector<Sealing>& refused) {
  absl::MutexLock lock(&mutex_);
  for (const Sealing& sealing : refused) {
    const auto found = frames_.find(sealing.layout->id);
    if (found == frames_.end()) continue;
    OpenFrame* const frame = found->second.get();
    absl::MutexLock frame_lock(&frame->mutex);
    FrameRows rows = *sealing.rows;
    AppendRows(frame->rows, &rows);
    if (frame->rows.size() == 0) {
      frame->last_position = frame->sealing_last_position;
      frame->opened = absl::InfinitePast();
    }
    frame->first_position = frame->sealing_first_position;
    frame->rows = std::move(rows);
    frame->sealing = nullptr;
  }
}

uint64_t Head::SealedUpTo() const {
  // Read first: an entry that is applied later has a higher position.
  uint64_t position = applied_position_ + 1;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, frame] : frames_) {
    absl::MutexLock frame_lock(&frame->mutex);
    if (frame->sealing != nullptr) {
      position = std::min(position, frame->sealing_first_position);
    } else if (frame->rows.size() > 0) {
      position = std::min(position, frame->first_position);
    }
  }
  return position;
}

void Head::CopyColumn(const OpenFrame& frame, const FrameRows& rows, size_t column,
                      int64_t begin_ns, int64_t end_ns, SampleBlock* out) {
  const size_t width = frame.layout->series.size();
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t time = rows.times[row];
    if (time < begin_ns || (time >= end_ns && end_ns != INT64_MAX)) continue;
    out->times.push_back(time);
    out->steps.push_back(rows.steps.empty() ? kNoStep : rows.steps[row]);
    out->attempts.push_back(frame.layout->attempt);
    out->values.push_back(rows.values[row * width + column]);
  }
}

std::vector<Head::Piece> Head::CopySeries(const Series& series, int64_t begin_ns,
                                          int64_t end_ns) const {
  std::vector<std::shared_ptr<OpenFrame>> frames;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sources_.find(series.source);
    if (found != sources_.end()) frames = found->second;
  }
  std::vector<Piece> pieces;
  for (const auto& frame : frames) {
    const auto& columns = frame->layout->series;
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](const Series* s) { return s->id == series.id; });
    if (at == columns.end()) continue;
    const auto column = static_cast<size_t>(at - columns.begin());
    absl::MutexLock lock(&frame->mutex);
    if (frame->sealing != nullptr) {
      Piece& piece = pieces.emplace_back();
      piece.position = frame->sealing_last_position;
      CopyColumn(*frame, *frame->sealing, column, begin_ns, end_ns, &piece.samples);
    }
    if (frame->rows.size() > 0) {
      Piece& piece = pieces.emplace_back();
      piece.position = frame->last_position;
      CopyColumn(*frame, frame->rows, column, begin_ns, end_ns, &piece.samples);
    }
  }
  return pieces;
}

void Head::VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const {
  std::vector<std::shared_ptr<OpenFrame>> frames;
  {
    absl::MutexLock lock(&mutex_);
    frames.reserve(frames_.size());
    for (const auto& [id, frame] : frames_) frames.push_back(frame);
  }
  for (const auto& frame : frames) {
    absl::MutexLock lock(&frame->mutex);
    if (frame->latest_values.empty()) continue;
    visit({frame->layout, frame->latest_time, frame->latest_step, frame->received,
           frame->latest_values, frame->latest_times, frame->latest_received});
  }
}

void Head::RemoveJob(JobId job) {
  absl::MutexLock lock(&mutex_);
  for (auto it = frames_.begin(); it != frames_.end();) {
    if (it->second->layout->series.front()->job_id != job) {
      ++it;
      continue;
    }
    {
      absl::MutexLock frame_lock(&it->second->mutex);
      open_rows_ -= it->second->rows.size();
      open_values_ -= it->second->rows.values.size();
    }
    frames_.erase(it++);
  }
  for (auto it = sources_.begin(); it != sources_.end();) {
    if (it->second.front()->layout->series.front()->job_id == job) {
      sources_.erase(it++);
    } else {
      ++it;
    }
  }
}

}  // namespace tacho::storage
