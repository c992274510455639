// The open rows of one layout. Rows are copied under the frame's lock and encoded without it: what
// is encoded are blocks, which no longer change.
#include "storage/head/open_frame.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"

namespace tacho::storage {
namespace {

// A tail that has taken this much becomes a block before more is added.
constexpr size_t kTailBytes = 16 << 10;

OpenWeight WeightOf(const RowBlock& block) {
  OpenWeight weight{.rows = block.rows()};
  (block.compressed() ? weight.compressed_bytes : weight.raw_bytes) = block.bytes();
  return weight;
}

OpenWeight WeightOf(std::span<const RowBlockPtr> blocks) {
  OpenWeight weight;
  for (const RowBlockPtr& block : blocks) weight += WeightOf(*block);
  return weight;
}

}  // namespace

OpenWeight& OpenWeight::operator+=(const OpenWeight& other) {
  rows += other.rows;
  raw_bytes += other.raw_bytes;
  compressed_bytes += other.compressed_bytes;
  return *this;
}

OpenWeight& OpenWeight::operator-=(const OpenWeight& other) {
  TACHO_CHECK(rows >= other.rows && raw_bytes >= other.raw_bytes);
  TACHO_CHECK(compressed_bytes >= other.compressed_bytes);
  rows -= other.rows;
  raw_bytes -= other.raw_bytes;
  compressed_bytes -= other.compressed_bytes;
  return *this;
}

void OpenTotal::Add(const OpenWeight& weight) {
  rows_ += weight.rows;
  if (weight.raw_bytes != 0) raw_bytes_ += weight.raw_bytes;
  if (weight.compressed_bytes != 0) compressed_bytes_ += weight.compressed_bytes;
}

void OpenTotal::Subtract(const OpenWeight& weight) {
  TACHO_CHECK(rows_.fetch_sub(weight.rows) >= weight.rows);
  TACHO_CHECK(raw_bytes_.fetch_sub(weight.raw_bytes) >= weight.raw_bytes);
  TACHO_CHECK(compressed_bytes_.fetch_sub(weight.compressed_bytes) >= weight.compressed_bytes);
}

OpenFrame::OpenFrame(LayoutPtr layout, OpenTotal* total)
    : layout_(std::move(layout)), total_(total), tail_(layout_->series.size(), layout_->has_steps) {
  const auto& series = layout_->series;
  TACHO_CHECK(!series.empty() && total_ != nullptr);
  for (size_t i = 1; i < series.size(); ++i) {
    if (series[i]->id <= series[i - 1]->id) ids_ascend_ = false;
  }
}

OpenFrame::~OpenFrame() {
  total_->Subtract(weight_);
  total_->Subtract(sealing_weight_);
}

void OpenFrame::Publish() {
  // Only oldest_position_ has an order to keep, with what Head says of positions.
  constexpr auto kAnyOrder = std::memory_order_relaxed;
  rows_.store(static_cast<uint32_t>(weight_.rows), kAnyOrder);
  raw_bytes_.store(weight_.raw_bytes, kAnyOrder);
  bytes_.store(weight_.raw_bytes + weight_.compressed_bytes, kAnyOrder);
  opened_ns_.store(absl::ToUnixNanos(opened_), kAnyOrder);
  // One store, because trimming the journal must always see one of the two positions.
  const uint64_t oldest = !sealing_.empty()  ? sealing_first_position_
                          : weight_.rows > 0 ? first_position_
                                             : UINT64_MAX;
  oldest_position_.store(oldest, std::memory_order_release);
}

size_t OpenFrame::Append(const RowsEntry& entry, uint64_t position, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (weight_.rows == 0) {
    first_position_ = position;
    opened_ = now;
  }
  TACHO_CHECK(position > last_position_);
  last_position_ = position;
  // Copying a long tail over and over would cost more than a block.
  if (tail_.bytes() >= kTailBytes && !tail_.HasRoomFor(entry.rows)) {
    FreezeTail(kTailBytes / tail_.row_bytes());
  }
  const size_t bytes_before = tail_.bytes();
  tail_.Append(entry);
  latest_.Include(entry, now);
  const OpenWeight more{.rows = entry.rows, .raw_bytes = tail_.bytes() - bytes_before};
  weight_ += more;
  total_->Add(more);
  Publish();
  return weight_.rows;
}

void OpenFrame::FreezeTail(size_t expected) {
  if (tail_.rows() == 0) return;
  const OpenWeight before{.rows = tail_.rows(), .raw_bytes = tail_.bytes()};
  blocks_.push_back(RowBlock::Of(
      std::exchange(tail_, RawRows(layout_->series.size(), layout_->has_steps, expected))));
  const OpenWeight after = WeightOf(*blocks_.back());
  total_->Add(after);
  total_->Subtract(before);
  weight_ += after;
  weight_ -= before;
}

void OpenFrame::Compress() {
  std::vector<RowBlockPtr> parts;
  {
    absl::MutexLock lock(&mutex_);
    FreezeTail(tail_.rows() / 2);
    Publish();
    if (blocks_.empty() || blocks_.back()->compressed()) return;
    const auto count = static_cast<std::ptrdiff_t>(BlocksToMerge(blocks_));
    parts.assign(blocks_.end() - count, blocks_.end());
  }
  const RowBlockPtr merged = RowBlock::Compress(parts);
  const OpenWeight before = WeightOf(parts);
  const OpenWeight after = WeightOf(*merged);
  absl::MutexLock lock(&mutex_);
  // Gone if they were taken for sealing: then this was for nothing.
  const auto at = std::search(blocks_.begin(), blocks_.end(), parts.begin(), parts.end());
  if (at == blocks_.end()) return;
  *at = merged;
  blocks_.erase(at + 1, at + static_cast<std::ptrdiff_t>(parts.size()));
  total_->Add(after);
  total_->Subtract(before);
  weight_ += after;
  weight_ -= before;
  Publish();
}

std::optional<OpenFrame::Taken> OpenFrame::TakeForSealing() {
  absl::MutexLock lock(&mutex_);
  if (weight_.rows == 0 || !sealing_.empty()) return std::nullopt;
  FreezeTail(0);
  sealing_ = std::exchange(blocks_, {});
  sealing_weight_ = std::exchange(weight_, {});
  sealing_first_position_ = first_position_;
  sealing_last_position_ = last_position_;
  Publish();
  return Taken{sealing_, sealing_last_position_, sealing_weight_.rows};
}

void OpenFrame::FinishSealing() {
  std::vector<RowBlockPtr> sealed;  // Freed behind the lock.
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(!sealing_.empty());
  sealed.swap(sealing_);
  total_->Subtract(std::exchange(sealing_weight_, {}));
  was_sealed_ = true;
  Publish();
}

void OpenFrame::ReturnFromSealing() {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(!sealing_.empty());
  if (weight_.rows == 0) last_position_ = sealing_last_position_;
  first_position_ = sealing_first_position_;
  opened_ = absl::UnixEpoch();  // Long due.
  blocks_.insert(blocks_.begin(), sealing_.begin(), sealing_.end());
  sealing_.clear();
  weight_ += std::exchange(sealing_weight_, {});
  Publish();
}

FrameRows OpenFrame::Taken::Decode(const Layout& layout) const {
  FrameRows out;
  out.times.reserve(rows);
  if (layout.has_steps) out.steps.reserve(rows);
  out.values.resize(rows * layout.series.size());
  for (const RowBlockPtr& block : blocks) {
    TACHO_CHECK(out.times.size() + block->rows() <= rows);
    block->CopyColumns(0, layout.series.size(), out.values.data() + out.times.size(), rows);
    block->AppendTimes(&out.times);
    block->AppendSteps(&out.steps);
  }
  TACHO_CHECK(out.times.size() == rows && out.steps.size() == (layout.has_steps ? rows : 0));
  return out;
}

std::optional<uint32_t> OpenFrame::ColumnOf(SeriesId series) const {
  const auto& columns = layout_->series;
  auto at = columns.end();
  if (ids_ascend_) {
    // Series of a layout are mostly registered together.
    const uint64_t guess = series - columns.front()->id;
    if (guess < columns.size() && columns[guess]->id == series) return guess;
    at = std::lower_bound(columns.begin(), columns.end(), series,
                          [](const auto& column, SeriesId id) { return column->id < id; });
  } else {
    at = std::find_if(columns.begin(), columns.end(),
                      [&](const auto& column) { return column->id == series; });
  }
  if (at == columns.end() || (*at)->id != series) return std::nullopt;
  return static_cast<uint32_t>(at - columns.begin());
}

HeadColumn OpenFrame::CaptureBlocks(const std::vector<RowBlockPtr>& blocks, uint32_t column) const {
  TACHO_CHECK(column < layout_->series.size());
  HeadColumn piece{.attempt = layout_->attempt, .column = column, .blocks = blocks};
  for (const RowBlockPtr& block : blocks) {
    piece.first_time_ns = std::min(piece.first_time_ns, block->first_time_ns());
    piece.last_time_ns = std::max(piece.last_time_ns, block->last_time_ns());
  }
  return piece;
}

void OpenFrame::CaptureTail(HeadColumn* piece) const {
  const size_t rows = tail_.rows();
  piece->tail.times.resize(rows);
  piece->tail.steps.resize(rows);
  piece->tail.values.resize(rows);
  piece->tail.attempts.assign(rows, layout_->attempt);
  for (size_t row = 0; row < rows; ++row) {
    const int64_t time = tail_.Time(row);
    piece->tail.times[row] = time;
    piece->tail.steps[row] = tail_.Step(row);
    piece->tail.values[row] = tail_.Value(row, piece->column);
    piece->first_time_ns = std::min(piece->first_time_ns, time);
    piece->last_time_ns = std::max(piece->last_time_ns, time);
  }
}

void OpenFrame::Capture(uint32_t column, std::vector<HeadColumn>* out) const {
  absl::MutexLock lock(&mutex_);
  if (!sealing_.empty()) {
    out->push_back(CaptureBlocks(sealing_, column));
    out->back().position = sealing_last_position_;
  }
  if (weight_.rows > 0) {
    out->push_back(CaptureBlocks(blocks_, column));
    out->back().position = last_position_;
    CaptureTail(&out->back());
  }
}

OpenFrame::AllRows OpenFrame::CaptureAll() const {
  absl::MutexLock lock(&mutex_);
  AllRows all;
  if (!sealing_.empty()) all.sealing = {sealing_, sealing_last_position_};
  if (weight_.rows > 0) {
    all.open = {blocks_, last_position_};
    if (tail_.rows() > 0) all.open.blocks.push_back(RowBlock::Of(tail_.Copy()));
  }
  return all;
}

void OpenFrame::AddColumn(const AllRows& rows, uint32_t column,
                          std::vector<HeadColumn>* out) const {
  for (const AllRows::Piece* piece : {&rows.sealing, &rows.open}) {
    if (piece->blocks.empty()) continue;
    out->push_back(CaptureBlocks(piece->blocks, column));
    out->back().position = piece->position;
  }
}

LatestValues::Newest OpenFrame::NewestRow(uint32_t column) const {
  TACHO_CHECK(column < layout_->series.size());
  absl::MutexLock lock(&mutex_);
  return latest_.NewestRow(column);
}

void OpenFrame::EndLatest(const absl::flat_hash_map<SeriesId, int64_t>& times_ns) {
  absl::MutexLock lock(&mutex_);
  for (size_t column = 0; column < layout_->series.size(); ++column) {
    const auto ended = times_ns.find(layout_->series[column]->id);
    if (ended != times_ns.end()) latest_.End(column, ended->second);
  }
}

void OpenFrame::VisitLatest(const std::function<void(const LatestRow&)>& visit) const {
  absl::MutexLock lock(&mutex_);
  if (!latest_.empty()) visit(latest_.View(layout_));
}

}  // namespace tacho::storage
