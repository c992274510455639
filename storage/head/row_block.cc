// Raw rows lie row by row, as they come; compressed blocks lie column by column. CopyColumns()
// turns rows into columns in tiles of a cache line.
#include "storage/head/row_block.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "storage/codec/bytes.h"
#include "storage/codec/open_codec.h"
#include "storage/model/series.h"

namespace tacho::storage {
namespace {

// Columns whose values share a cache line of a raw row.
constexpr size_t kTile = 8;
constexpr size_t kMergedBlocks = 4;
// Blocks of this many rows gain nothing from becoming longer.
constexpr size_t kFullRows = 512;

// Behind what is in *out.
void AppendBlock(const RowBlock& block, size_t column, uint32_t attempt, SampleBlock* out) {
  TACHO_CHECK(out->values.size() == out->size() && out->steps.size() == out->size());
  const size_t before = out->size();
  block.AppendTimes(&out->times);
  block.AppendSteps(&out->steps);
  out->steps.resize(before + block.rows(), kNoStep);
  out->attempts.resize(before + block.rows(), attempt);
  out->values.resize(before + block.rows());
  TACHO_CHECK(out->times.size() == out->values.size() && out->steps.size() == out->values.size());
  block.CopyColumns(column, 1, out->values.data() + before, block.rows());
}

void AppendSamples(const SampleBlock& from, SampleBlock* out) {
  out->times.insert(out->times.end(), from.times.begin(), from.times.end());
  out->steps.insert(out->steps.end(), from.steps.begin(), from.steps.end());
  out->attempts.insert(out->attempts.end(), from.attempts.begin(), from.attempts.end());
  out->values.insert(out->values.end(), from.values.begin(), from.values.end());
}

void KeepTimes(int64_t begin_ns, int64_t end_ns, SampleBlock* samples) {
  size_t kept = 0;
  for (size_t i = 0; i < samples->size(); ++i) {
    const int64_t time = samples->times[i];
    if (time < begin_ns || (time >= end_ns && end_ns != INT64_MAX)) continue;
    samples->times[kept] = time;
    samples->steps[kept] = samples->steps[i];
    samples->attempts[kept] = samples->attempts[i];
    samples->values[kept] = samples->values[i];
    ++kept;
  }
  samples->times.resize(kept);
  samples->steps.resize(kept);
  samples->attempts.resize(kept);
  samples->values.resize(kept);
}

}  // namespace

void RawRows::Grow(size_t rows) {
  // A quarter more than needed: at a million series room that is never used is dear.
  capacity_ = rows_ == 0 ? std::max(rows, expected_) : rows + rows / 4;
  auto words = std::make_unique_for_overwrite<uint64_t[]>(capacity_ * row_words());
  if (rows_ > 0) std::memcpy(words.get(), words_.get(), rows_ * row_bytes());
  words_ = std::move(words);
}

RawRows RawRows::Copy() const {
  RawRows copy(columns_, has_steps_);
  if (rows_ == 0) return copy;
  copy.Grow(rows_);
  std::memcpy(copy.words_.get(), words_.get(), rows_ * row_bytes());
  copy.rows_ = rows_;
  return copy;
}

void RawRows::Append(const RowsEntry& entry) {
  TACHO_CHECK(entry.columns == columns_ && entry.has_steps == has_steps_);
  TACHO_CHECK(entry.times.size() == entry.rows * sizeof(int64_t));
  TACHO_CHECK(entry.steps.size() == (has_steps_ ? entry.times.size() : 0));
  TACHO_CHECK(entry.values.size() == entry.rows * columns_ * sizeof(double));
  if (!HasRoomFor(entry.rows)) Grow(rows_ + entry.rows);
  const size_t value_bytes = columns_ * sizeof(double);
  uint64_t* word = words_.get() + rows_ * row_words();
  for (size_t row = 0; row < entry.rows; ++row) {
    *word++ = static_cast<uint64_t>(entry.Time(row));
    if (has_steps_) *word++ = static_cast<uint64_t>(entry.Step(row));
    std::memcpy(word, entry.values.data() + row * value_bytes, value_bytes);
    word += columns_;
  }
  rows_ += entry.rows;
}

int64_t RawRows::Step(size_t row) const {
  return has_steps_ ? static_cast<int64_t>(Row(row)[1]) : kNoStep;
}

double RawRows::Value(size_t row, size_t column) const {
  return std::bit_cast<double>(Row(row)[row_words() - columns_ + column]);
}

void RawRows::CopyColumns(size_t first, size_t count, double* out, size_t stride) const {
  TACHO_CHECK(first + count <= columns_ && stride >= rows_);
  const size_t values_at = row_words() - columns_;
  for (size_t tile = 0; tile < count; tile += kTile) {
    const size_t width = std::min(kTile, count - tile);
    for (size_t row = 0; row < rows_; ++row) {
      const uint64_t* const from = Row(row) + values_at + first + tile;
      double* const to = out + tile * stride + row;
      for (size_t i = 0; i < width; ++i) to[i * stride] = std::bit_cast<double>(from[i]);
    }
  }
}

RowBlockPtr RowBlock::Of(RawRows rows) {
  TACHO_CHECK(rows.rows() > 0 && rows.rows() <= UINT32_MAX && rows.columns() <= UINT32_MAX);
  auto block = std::make_shared<RowBlock>();
  block->columns_ = static_cast<uint32_t>(rows.columns());
  block->rows_ = static_cast<uint32_t>(rows.rows());
  block->has_steps_ = rows.has_steps();
  block->first_time_ns_ = block->last_time_ns_ = rows.Time(0);
  for (size_t row = 1; row < rows.rows(); ++row) {
    block->first_time_ns_ = std::min(block->first_time_ns_, rows.Time(row));
    block->last_time_ns_ = std::max(block->last_time_ns_, rows.Time(row));
  }
  block->raw_ = std::move(rows);
  return block;
}

RowBlockPtr RowBlock::Compress(std::span<const RowBlockPtr> parts) {
  TACHO_CHECK(!parts.empty());
  auto block = std::make_shared<RowBlock>();
  const RowBlock& any = *parts.front();
  block->columns_ = any.columns_;
  block->has_steps_ = any.has_steps_;
  block->first_time_ns_ = any.first_time_ns_;
  block->last_time_ns_ = any.last_time_ns_;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;
  for (const RowBlockPtr& part : parts) {
    TACHO_CHECK(part->columns_ == any.columns_ && part->has_steps_ == any.has_steps_);
    part->AppendTimes(&times);
    part->AppendSteps(&steps);
    block->first_time_ns_ = std::min(block->first_time_ns_, part->first_time_ns_);
    block->last_time_ns_ = std::max(block->last_time_ns_, part->last_time_ns_);
    if (part->compressed()) {
      block->level_ = std::max<uint8_t>(block->level_, static_cast<uint8_t>(part->level_ + 1));
    }
  }
  const size_t rows = times.size();
  TACHO_CHECK(rows <= UINT32_MAX && (steps.empty() || steps.size() == rows));
  block->rows_ = static_cast<uint32_t>(rows);

  std::string encoded;
  std::string lengths;
  size_t done = 0;
  const auto end_part = [&] {
    PutVarint(encoded.size() - done, &lengths);
    done = encoded.size();
  };
  OpenEncoder encoder;
  encoder.EncodeIntegers(times, &encoded);
  end_part();
  if (any.has_steps_) {
    encoder.EncodeIntegers(steps, &encoded);
    end_part();
  }
  std::vector<double> values(kTile * rows);
  for (size_t first = 0; first < any.columns_; first += kTile) {
    const size_t width = std::min<size_t>(kTile, any.columns_ - first);
    size_t row = 0;
    for (const RowBlockPtr& part : parts) {
      part->CopyColumns(first, width, values.data() + row, rows);
      row += part->rows();
    }
    for (size_t column = 0; column < width; ++column) {
      encoder.EncodeValues(std::span(values).subspan(column * rows, rows), &encoded);
      end_part();
    }
  }

  TACHO_CHECK(lengths.size() + encoded.size() <= UINT32_MAX);
  block->lengths_size_ = static_cast<uint32_t>(lengths.size());
  block->encoded_size_ = static_cast<uint32_t>(lengths.size() + encoded.size());
  block->encoded_ = std::make_unique_for_overwrite<char[]>(block->encoded_size_ + kOpenPadding);
  std::memcpy(block->encoded_.get(), lengths.data(), lengths.size());
  std::memcpy(block->encoded_.get() + lengths.size(), encoded.data(), encoded.size());
  return block;
}

size_t RowBlock::bytes() const { return sizeof(*this) + encoded_size_ + raw_.bytes(); }

class RowBlock::Parts {
 public:
  Parts(const RowBlock& block, size_t first)
      : lengths_(absl::string_view(block.encoded_.get(), block.lengths_size_)),
        parts_(absl::string_view(block.encoded_.get(), block.encoded_size_)
                   .substr(block.lengths_size_)) {
    uint64_t before = 0;
    for (size_t part = 0; part < first; ++part) before += lengths_.Varint();
    TACHO_CHECK(before <= parts_.size());
    parts_.remove_prefix(before);
  }

  absl::string_view Next() {
    const uint64_t length = lengths_.Varint();
    TACHO_CHECK(length <= parts_.size());
    const absl::string_view part = parts_.substr(0, length);
    parts_.remove_prefix(part.size());
    return part;
  }

 private:
  ByteReader lengths_;
  absl::string_view parts_;  // From the next one on.
};

void RowBlock::AppendIntegers(size_t part, std::vector<int64_t>* out) const {
  out->resize(out->size() + rows_);
  DecodeOpenIntegers(Parts(*this, part).Next(), std::span(*out).last(rows_));
}

void RowBlock::AppendTimes(std::vector<int64_t>* out) const {
  if (compressed()) return AppendIntegers(0, out);
  for (size_t row = 0; row < rows_; ++row) out->push_back(raw_.Time(row));
}

void RowBlock::AppendSteps(std::vector<int64_t>* out) const {
  if (!has_steps_) return;
  if (compressed()) return AppendIntegers(1, out);
  for (size_t row = 0; row < rows_; ++row) out->push_back(raw_.Step(row));
}

void RowBlock::CopyColumns(size_t first, size_t count, double* out, size_t stride) const {
  TACHO_CHECK(first + count <= columns_ && stride >= rows_);
  if (!compressed()) return raw_.CopyColumns(first, count, out, stride);
  Parts parts(*this, first + (has_steps_ ? 2 : 1));
  for (size_t column = 0; column < count; ++column) {
    DecodeOpenValues(parts.Next(), {out + column * stride, rows_});
  }
}

size_t BlocksToMerge(std::span<const RowBlockPtr> blocks) {
  size_t count = 1;
  // Raw blocks are there more than once if compressing was interrupted.
  while (count < blocks.size() && !blocks[blocks.size() - 1 - count]->compressed()) ++count;
  for (unsigned level = 0;; ++level) {
    size_t same = 0;
    while (count + same < blocks.size()) {
      const RowBlock& block = *blocks[blocks.size() - 1 - count - same];
      if (block.level() != level || block.rows() >= kFullRows) break;
      ++same;
    }
    if (same + 1 < kMergedBlocks) return count;
    count += same;
  }
}

SampleBlock HeadColumn::Decode(int64_t begin_ns, int64_t end_ns) const {
  SampleBlock out;
  const auto wanted = [&](int64_t first, int64_t last) {
    return last >= begin_ns && (first < end_ns || end_ns == INT64_MAX);
  };
  if (!wanted(first_time_ns, last_time_ns)) return out;
  for (const RowBlockPtr& block : blocks) {
    if (!wanted(block->first_time_ns(), block->last_time_ns())) continue;
    AppendBlock(*block, column, attempt, &out);
  }
  AppendSamples(tail, &out);
  if (first_time_ns < begin_ns || last_time_ns >= end_ns) KeepTimes(begin_ns, end_ns, &out);
  return out;
}

}  // namespace tacho::storage
