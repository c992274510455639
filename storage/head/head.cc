// The open rows of all layouts. A lookup takes the lock for reading only; frames have locks of
// their own, so that appending to one layout does not wait for readers of another.
#include "storage/head/head.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "proto/base/check.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

// Between 0 and 1, evenly over the layouts.
double ShareOf(LayoutId layout) {
  return static_cast<double>((layout * 0x9e3779b97f4a7c15) >> 32) * 0x1p-32;
}

bool IsDue(const OpenFrame& frame, const Head::SealingNeed& need) {
  if (frame.rows() == 0) return false;
  if (frame.rows() >= need.min_rows || frame.oldest_position() < need.positions_before) return true;
  absl::Time opened_before = need.opened_before;
  if (!frame.was_sealed()) opened_before += need.spread * ShareOf(frame.layout()->id);
  return frame.opened() < opened_before || frame.opened() > need.opened_after;
}

// Frames change while they are being sorted: by what they said first.
template <typename Measure>
void SortDescending(const Measure& measure, std::vector<std::shared_ptr<OpenFrame>>* frames) {
  std::vector<std::pair<uint64_t, std::shared_ptr<OpenFrame>>> keyed;
  keyed.reserve(frames->size());
  for (auto& frame : *frames) keyed.emplace_back(measure(*frame), std::move(frame));
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < keyed.size(); ++i) (*frames)[i] = std::move(keyed[i].second);
}

}  // namespace

OpenFrame* Head::FindOrAdd(const LayoutPtr& layout) {
  // The pointer stays good: only RemoveJob() and RemoveSealed() remove frames, on the thread that
  // appends.
  {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = frames_.find(layout->id);
    if (found != frames_.end()) return found->second.get();
  }
  auto frame = std::make_shared<OpenFrame>(layout, &total_);
  absl::MutexLock lock(&mutex_);
  sources_[layout->series.front()->source].push_back(frame);
  return frames_.try_emplace(layout->id, std::move(frame)).first->second.get();
}

std::vector<Head::FramePtr> Head::Frames(
    const std::function<bool(const OpenFrame&)>& wanted) const {
  std::vector<FramePtr> frames;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [id, frame] : frames_) {
    if (wanted(*frame)) frames.push_back(frame);
  }
  return frames;
}

void Head::Append(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position,
                  absl::Time now) {
  TACHO_CHECK(layout != nullptr && position > applied_position_);
  AppendLate(layout, entry, position, now);
}

void Head::AppendLate(const LayoutPtr& layout, const RowsEntry& entry, uint64_t position,
                      absl::Time now) {
  const size_t rows = FindOrAdd(layout)->Append(entry, position, now);
  if (rows > longest_) longest_ = rows;
  applied_position_ = std::max(applied_position_.load(), position);
}

void Head::NoteRead(uint64_t position) {
  applied_position_ = std::max(applied_position_.load(), position);
}

void Head::Compress(uint64_t bytes, uint64_t raw_bytes) {
  auto frames = Frames([](const OpenFrame& frame) { return frame.raw_bytes() > 0; });
  SortDescending([](const OpenFrame& frame) { return frame.raw_bytes(); }, &frames);
  for (const FramePtr& frame : frames) {
    if (total_.bytes() <= bytes || total_.raw_bytes() <= raw_bytes) return;
    frame->Compress();
  }
}

std::vector<Head::Sealing> Head::TakeForSealing(const SealingNeed& need, size_t max_values) {
  longest_ = 0;
  std::vector<Sealing> all;
  size_t values = 0;
  uint64_t bytes = 0;
  // Says whether there is room for more.
  const auto take = [&](const FramePtr& frame) {
    const uint64_t frame_bytes = frame->bytes();
    const size_t columns = frame->layout()->series.size();
    if (!all.empty() && values + frame->rows() * columns > max_values) return false;
    if (auto taken = frame->TakeForSealing(); taken) {
      values += taken->rows * columns;
      bytes += frame_bytes;
      all.push_back({frame, *std::move(taken)});
    }
    return true;
  };
  for (const FramePtr& frame : Frames([&](const OpenFrame& f) { return IsDue(f, need); })) {
    if (!take(frame)) return all;
  }
  if (bytes >= need.excess_bytes) return all;
  auto large = Frames([&](const OpenFrame& frame) {
    return frame.rows() > 0 && frame.rows() >= need.excess_min_rows;
  });
  SortDescending([](const OpenFrame& frame) { return frame.bytes(); }, &large);
  for (const FramePtr& frame : large) {
    if (bytes >= need.excess_bytes || !take(frame)) break;
  }
  return all;
}

uint64_t Head::SealedUpTo() const {
  // Read first: an entry that is applied later has a higher position.
  uint64_t position = applied_position_ + 1;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [id, frame] : frames_) position = std::min(position, frame->oldest_position());
  return position;
}

std::vector<Head::FramePtr> Head::FramesOf(const SeriesSource* source) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = sources_.find(source);
  return found == sources_.end() ? std::vector<FramePtr>() : found->second;
}

std::vector<HeadColumn> Head::Capture(const Series& series) const {
  std::vector<HeadColumn> pieces;
  for (const FramePtr& frame : FramesOf(series.source)) {
    if (const auto column = frame->ColumnOf(series.id)) frame->Capture(*column, &pieces);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const HeadColumn& a, const HeadColumn& b) { return a.position < b.position; });
  return pieces;
}

std::vector<CapturedFrame> Head::CaptureJob(JobId job) const {
  std::vector<CapturedFrame> captured;
  const auto wanted = [job](const OpenFrame& frame) {
    return frame.layout()->series.front()->job_id == job && frame.oldest_position() != UINT64_MAX;
  };
  for (FramePtr& frame : Frames(wanted)) {
    OpenFrame::AllRows rows = frame->CaptureAll();
    captured.push_back({std::move(frame), std::move(rows)});
  }
  return captured;
}

std::optional<LatestSample> Head::Latest(const SeriesPtr& series) const {
  std::optional<LatestSample> latest;
  int64_t newest_ns = INT64_MIN;  // Newest row of all layouts that have the series.
  for (const FramePtr& frame : FramesOf(series->source)) {
    const auto column = frame->ColumnOf(series->id);
    if (!column) continue;
    const LatestValues::Newest row = frame->NewestRow(*column);
    newest_ns = std::max(newest_ns, row.time_ns);
    if (IsStaleMarker(row.value)) continue;
    const uint32_t attempt = frame->layout()->attempt;
    if (latest && std::tie(row.time_ns, attempt) < std::tie(latest->time_ns, latest->attempt)) {
      continue;
    }
    latest = LatestSample{series, row.time_ns, row.step, attempt, row.value};
  }
  // A row of that layout that came late may have had a value of a later time.
  if (latest && latest->time_ns < newest_ns) return std::nullopt;
  return latest;
}

void Head::VisitLatestRows(const std::function<void(const LatestRow&)>& visit) const {
  for (const FramePtr& frame : Frames([](const OpenFrame&) { return true; })) {
    frame->VisitLatest(visit);
  }
}

void Head::EndLatest(const std::vector<SeriesEnd>& ends) {
  absl::flat_hash_map<const SeriesSource*, absl::flat_hash_map<SeriesId, int64_t>> by_source;
  for (const SeriesEnd& end : ends) by_source[end.series->source][end.series->id] = end.time_ns;
  for (const auto& [source, times_ns] : by_source) {
    for (const FramePtr& frame : FramesOf(source)) frame->EndLatest(times_ns);
  }
}

std::vector<JobId> Head::RemoveSealed(const std::vector<JobId>& jobs) {
  absl::flat_hash_set<JobId> sealed(jobs.begin(), jobs.end());
  const auto job_of = [](const FramePtr& frame) { return frame->layout()->series.front()->job_id; };
  std::vector<FramePtr> removed;  // Freed behind the lock.
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, frame] : frames_) {
    if (frame->oldest_position() != UINT64_MAX) sealed.erase(job_of(frame));
  }
  absl::erase_if(sources_, [&](auto& source) {
    if (!sealed.contains(job_of(source.second.front()))) return false;
    std::move(source.second.begin(), source.second.end(), std::back_inserter(removed));
    return true;
  });
  absl::erase_if(frames_, [&](const auto& frame) { return sealed.contains(job_of(frame.second)); });
  return {sealed.begin(), sealed.end()};
}

void Head::RemoveJob(JobId job) {
  std::vector<FramePtr> removed;  // Freed behind the lock.
  absl::MutexLock lock(&mutex_);
  for (auto it = frames_.begin(); it != frames_.end();) {
    if (it->second->layout()->series.front()->job_id != job) {
      ++it;
      continue;
    }
    removed.push_back(std::move(it->second));
    frames_.erase(it++);
  }
  for (auto it = sources_.begin(); it != sources_.end();) {
    if (it->second.front()->layout()->series.front()->job_id == job) {
      sources_.erase(it++);
    } else {
      ++it;
    }
  }
}

}  // namespace tacho::storage
