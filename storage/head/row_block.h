// Rows of one layout in memory: raw rows, to which more are appended, and blocks of rows that no
// longer change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "storage/codec/keys.h"
#include "storage/journal/rows_entry.h"
#include "storage/model/series_reader.h"

namespace tacho::storage {

// Rows as they come, in one piece of memory: time, step if the layout has them, values; then the
// next row.
class RawRows {
 public:
  // The first row makes room for `expected` rows.
  RawRows(size_t columns, bool has_steps, size_t expected = 0)
      : columns_(columns), has_steps_(has_steps), expected_(expected) {}

  RawRows Copy() const;  // Without room for more.

  // Copies the rows of an entry, which must fit.
  void Append(const RowsEntry& entry);

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  bool has_steps() const { return has_steps_; }
  size_t bytes() const { return capacity_ * row_bytes(); }
  size_t row_bytes() const { return row_words() * sizeof(uint64_t); }
  bool HasRoomFor(size_t rows) const { return rows_ + rows <= capacity_; }

  int64_t Time(size_t row) const { return static_cast<int64_t>(Row(row)[0]); }
  int64_t Step(size_t row) const;  // kNoStep without steps.
  double Value(size_t row, size_t column) const;

  // Copies `count` columns from `first` on: column by column to `out`, `stride` values apart.
  void CopyColumns(size_t first, size_t count, double* out, size_t stride) const;

 private:
  size_t row_words() const { return columns_ + (has_steps_ ? 2 : 1); }
  const uint64_t* Row(size_t row) const { return words_.get() + row * row_words(); }
  void Grow(size_t rows);

  size_t columns_;
  bool has_steps_;
  size_t expected_;
  size_t rows_ = 0;
  size_t capacity_ = 0;  // Rows there is room for.
  std::unique_ptr<uint64_t[]> words_;
};

// Immutable. Either as the rows came or compressed: each column by itself, bit for bit.
class RowBlock {
 public:
  // `rows` are not empty.
  static std::shared_ptr<const RowBlock> Of(RawRows rows);
  // All rows of some blocks of one layout, one block after the other, compressed.
  static std::shared_ptr<const RowBlock> Compress(
      std::span<const std::shared_ptr<const RowBlock>> parts);

  size_t rows() const { return rows_; }
  size_t bytes() const;  // In memory.
  bool compressed() const { return encoded_ != nullptr; }
  // How often its rows were compressed before this block was: see BlocksToMerge().
  unsigned level() const { return level_; }
  // The lowest and the highest time; the rows need not ascend.
  int64_t first_time_ns() const { return first_time_ns_; }
  int64_t last_time_ns() const { return last_time_ns_; }

  // Each appends rows() numbers.
  void AppendTimes(std::vector<int64_t>* out) const;
  void AppendSteps(std::vector<int64_t>* out) const;  // Nothing if the layout has none.
  // As RawRows::CopyColumns(): rows() values a column.
  void CopyColumns(size_t first, size_t count, double* out, size_t stride) const;

  RowBlock() : raw_(0, false) {}  // For std::make_shared.

 private:
  // Gives the compressed parts one after the other.
  class Parts;
  void AppendIntegers(size_t part, std::vector<int64_t>* out) const;

  RawRows raw_;
  // Compressed: varint length of every part, then the parts: times, steps if the layout has them,
  // columns.
  std::unique_ptr<char[]> encoded_;
  uint32_t lengths_size_ = 0;  // Where the parts begin.
  uint32_t encoded_size_ = 0;
  uint32_t columns_ = 0;
  uint32_t rows_ = 0;
  bool has_steps_ = false;
  uint8_t level_ = 0;
  int64_t first_time_ns_ = 0;
  int64_t last_time_ns_ = 0;
};
using RowBlockPtr = std::shared_ptr<const RowBlock>;

// How many of the last blocks are to be compressed into one, the last being raw. Blocks are merged
// four at a time, so that a value is compressed once more each time its block grows fourfold, and
// few small blocks remain.
size_t BlocksToMerge(std::span<const RowBlockPtr> blocks);

// Shares the blocks of rows with the head, so that thousands of columns can be held at once and
// decoded one after the other, whatever becomes of the rows meanwhile.
struct HeadColumn {
  FramePosition position = 0;  // Position of the last row.
  uint32_t attempt = 0;
  uint32_t column = 0;              // The series' column in the blocks.
  std::vector<RowBlockPtr> blocks;  // Oldest first; `tail` came after them.
  SampleBlock tail;
  // The lowest and the highest of all times; rows need not ascend.
  int64_t first_time_ns = INT64_MAX;
  int64_t last_time_ns = INT64_MIN;

  // Samples with times in [begin_ns, end_ns), in the order in which they came, stale markers
  // included. An end of INT64_MAX is no end.
  SampleBlock Decode(int64_t begin_ns, int64_t end_ns) const;
};

}  // namespace tacho::storage
