#include "storage/journal/sequence_set.h"

#include <algorithm>
#include <utility>

#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

constexpr size_t kDayBytes = 4;

}  // namespace

bool SequenceSet::Contains(uint64_t sequence) const {
  if (sequence <= watermark_) return true;
  const auto after =
      std::upper_bound(ahead_.begin(), ahead_.end(), sequence,
                       [](uint64_t value, const SequenceRange& r) { return value < r.first; });
  return after != ahead_.begin() && std::prev(after)->last >= sequence;
}

void SequenceSet::Add(SequenceRange range) {
  if (range.first <= watermark_ + 1) {
    watermark_ = std::max(watermark_, range.last);
  } else {
    // The ranges that touch or overlap the new one become one with it.
    auto first =
        std::lower_bound(ahead_.begin(), ahead_.end(), range.first,
                         [](const SequenceRange& r, uint64_t value) { return r.last + 1 < value; });
    auto last = first;
    for (; last != ahead_.end() && last->first <= range.last + 1; ++last) {
      range.first = std::min(range.first, last->first);
      range.last = std::max(range.last, last->last);
    }
    ahead_.insert(ahead_.erase(first, last), range);
  }
  auto joined = ahead_.begin();
  for (; joined != ahead_.end() && joined->first <= watermark_ + 1; ++joined) {
    watermark_ = std::max(watermark_, joined->last);
  }
  ahead_.erase(ahead_.begin(), joined);
}

std::string SequenceSet::Encode() const {
  std::string out;
  PutVarint(watermark_, &out);
  PutVarint(ahead_.size(), &out);
  for (const SequenceRange& range : ahead_) {
    PutVarint(range.first, &out);
    PutVarint(range.last, &out);
  }
  return out;
}

std::optional<SequenceSet> SequenceSet::Decode(absl::string_view bytes) {
  ByteReader reader(bytes);
  SequenceSet set;
  set.watermark_ = reader.Varint();
  const uint64_t ranges = reader.Varint();
  uint64_t previous = set.watermark_;
  for (uint64_t i = 0; i < ranges && reader.ok(); ++i) {
    SequenceRange range;
    range.first = reader.Varint();
    range.last = reader.Varint();
    if (range.first < previous + 2 || range.last < range.first) return std::nullopt;
    previous = range.last;
    set.ahead_.push_back(range);
  }
  if (!reader.AtEnd()) return std::nullopt;
  return set;
}

std::string OriginRecord::Encode() const {
  std::string bytes = durable.Encode();
  if (heard_day) PutLe32(*heard_day, &bytes);
  return bytes;
}

std::optional<OriginRecord> OriginRecord::Decode(absl::string_view bytes) {
  // A set says itself how long it is, so only one of the two can be one.
  if (auto set = SequenceSet::Decode(bytes)) return OriginRecord{*std::move(set), {}};
  if (bytes.size() < kDayBytes) return std::nullopt;
  auto set = SequenceSet::Decode(bytes.substr(0, bytes.size() - kDayBytes));
  if (!set) return std::nullopt;
  ByteReader day(bytes.substr(bytes.size() - kDayBytes));
  return OriginRecord{*std::move(set), day.Le32()};
}

}  // namespace tacho::storage
