#include "storage/journal/origin_record.h"

#include <utility>

#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

constexpr size_t kDayBytes = 4;

}  // namespace

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
