// The samples of a store: those of the columns of all days, and those of the journal's entries that
// are not sealed, merged as docs/storage_format.md says.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/format/bytes.h"
#include "tests/format/records.h"

namespace format_page {

inline constexpr int64_t kNoStep = INT64_MIN;

// One sample of a series, without what a later one replaces.
struct SampleKey {
  int64_t time = 0;
  uint32_t attempt = 0;
  int64_t step = kNoStep;
  friend auto operator<=>(const SampleKey&, const SampleKey&) = default;
};

struct Sample {
  uint64_t position = 0;
  uint64_t bits = 0;
};

using Samples = std::map<SampleKey, Sample>;
using SamplesOfSeries = std::map<uint64_t, Samples>;  // By series id.

// If two samples have the same key, the one with the higher position stays; at the same position,
// the later one. A stale marker is no sample.
void AddSample(const SampleKey& key, const Sample& sample, Samples* samples);

// The rows of the journal that are not sealed.
class OpenRows {
 public:
  // Takes the rows of an entry, unless they are sealed, and adds them to the extents of what they
  // belong to. Positions ascend.
  void ReadEntry(uint64_t position, Bytes entry, Records* records);
  // All rows of a layout have the position of the last.
  void AddTo(SamplesOfSeries* samples) const;

 private:
  struct Value {
    uint64_t series = 0;
    SampleKey key;
    uint64_t bits = 0;
  };
  struct OfLayout {
    uint64_t last_position = 0;
    std::vector<Value> values;  // As they came.
  };

  std::map<uint64_t, OfLayout> layouts_;
};

// The columns of one day.
class Day {
 public:
  Day(int64_t number, const Records* records) : number_(number), records_(records) {}

  // 'T' sorts before 'V': in the order of keys every frame is there before its columns.
  void ReadRecord(Bytes key, Bytes value, SamplesOfSeries* samples);
  uint64_t frames() const { return frames_.size(); }

 private:
  struct FrameKey {
    uint32_t job = 0;
    uint64_t layout = 0;
    int64_t time = 0;
    uint64_t position = 0;
    friend auto operator<=>(const FrameKey&, const FrameKey&) = default;
  };
  struct Frame {
    uint32_t attempt = 0;
    std::vector<int64_t> times;
    std::vector<int64_t> steps;
  };

  void ReadTimes(Bytes* key, Bytes* value);
  void ReadValueColumn(Bytes* key, Bytes* value, SamplesOfSeries* samples);

  const int64_t number_;
  const Records* const records_;
  std::map<FrameKey, Frame> frames_;
};

}  // namespace format_page
