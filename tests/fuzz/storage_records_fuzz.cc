// Everything that storage decodes from disk, over any bytes: refused or decoded, never a crash, and
// what is decoded is encoded back to something that decodes the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/codec/bytes.h"
#include "storage/codec/column_codec.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"
#include "storage/index/events.h"
#include "storage/index/index_records.h"
#include "storage/journal/rows_entry.h"
#include "storage/journal/sequence_set.h"

namespace tacho::storage {
namespace {

void Expect(bool holds) {
  if (!holds) std::abort();
}

void FuzzColumns(size_t count, absl::string_view bytes) {
  std::vector<double> values;
  if (ColumnCodec::DecodeValues(bytes, count, &values).ok()) {
    std::string again;
    ColumnCodec::EncodeValues(values, &again);
    std::vector<double> same;
    Expect(ColumnCodec::DecodeValues(again, count, &same).ok());
    Expect(values.empty() ||
           std::memcmp(values.data(), same.data(), values.size() * sizeof(double)) == 0);
  }
  std::vector<int64_t> integers;
  if (ColumnCodec::DecodeIntegers(bytes, count, &integers).ok()) {
    std::string again;
    ColumnCodec::EncodeIntegers(integers, &again);
    std::vector<int64_t> same;
    Expect(ColumnCodec::DecodeIntegers(again, count, &same).ok());
    Expect(integers == same);
  }
}

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Statistics that were read are written and read again: the same to the bit.
void FuzzStats(const ValueColumnHeader& header) {
  if (header.rows <= kRowsWithoutStats) return;
  std::string again;
  EncodeStats(header.stats, header.rows, &again);
  ByteReader in(again);
  ColumnStats stats;
  Expect(DecodeStats(header.rows, &in, &stats) == DecodedStats::kWritten && in.AtEnd());
  Expect(stats.count == header.stats.count && stats.non_finite == header.stats.non_finite);
  Expect(SameBits(stats.min, header.stats.min) && SameBits(stats.max, header.stats.max) &&
         SameBits(stats.sum, header.stats.sum) && SameBits(stats.first, header.stats.first) &&
         SameBits(stats.last, header.stats.last));
}

// Decoding gives back whatever was encoded.
void FuzzEncoding(absl::string_view bytes) {
  const size_t count = bytes.size() / sizeof(double);
  std::vector<double> values(count);
  std::vector<int64_t> integers(count);
  if (count > 0) {
    std::memcpy(values.data(), bytes.data(), count * sizeof(double));
    std::memcpy(integers.data(), bytes.data(), count * sizeof(double));
  }
  std::string encoded;
  ColumnCodec::EncodeValues(values, &encoded);
  std::vector<double> values_again;
  Expect(ColumnCodec::DecodeValues(encoded, count, &values_again).ok());
  Expect(count == 0 || std::memcmp(values.data(), values_again.data(), count * 8) == 0);
  encoded.clear();
  ColumnCodec::EncodeIntegers(integers, &encoded);
  std::vector<int64_t> integers_again;
  Expect(ColumnCodec::DecodeIntegers(encoded, count, &integers_again).ok());
  Expect(integers == integers_again);
  // The same bytes as small numbers, which other encodings take.
  values.assign(bytes.begin(), bytes.end());
  for (double& value : values) value /= 10;
  encoded.clear();
  ColumnCodec::EncodeValues(values, &encoded);
  Expect(ColumnCodec::DecodeValues(encoded, values.size(), &values_again).ok());
  Expect(values.empty() || std::memcmp(values.data(), values_again.data(), values.size() * 8) == 0);
}

void FuzzRecords(absl::string_view bytes) {
  if (const auto set = SequenceSet::Decode(bytes)) {
    Expect(SequenceSet::Decode(set->Encode()) == set);
  }
  if (const auto record = OriginRecord::Decode(bytes)) {
    const auto again = OriginRecord::Decode(record->Encode());
    Expect(again.has_value() && again->durable == record->durable);
    Expect(again->heard_day == record->heard_day);
  }
  if (const auto event = DecodeEvent(bytes)) Expect(DecodeEvent(EncodeEvent(*event)) == event);
  if (const auto entry = DecodeRowsEntry(bytes)) {
    Expect(entry->values.size() == entry->rows * entry->columns * sizeof(double));
    for (size_t row = 0; row < entry->rows; ++row) {
      static_cast<void>(entry->Time(row));
      static_cast<void>(entry->Step(row));
    }
  }
  if (const auto next = DecodeNextIds(bytes)) Expect(DecodeNextIds(EncodeNextIds(*next)) == next);
  if (const auto metric = DecodeMetric(bytes)) Expect(EncodeMetric(*metric).size() <= bytes.size());
  if (const auto series = DecodeSeriesRecord(bytes)) {
    const std::string again = EncodeSeriesRecord(*series);
    Expect(DecodeSeriesRecord(again) == series);
  }
  if (const auto layout = DecodeLayoutRecord(bytes)) {
    Expect(layout->columns() <= kMaxLayoutColumns);
    Expect(DecodeLayoutRecord(EncodeLayoutRecord(*layout)) == layout);
  }
  if (const auto key = ValueColumnKey::Decode(bytes)) Expect(key->Encode() == bytes);
  static_cast<void>(DecodeTimeColumnRows(bytes));
  static_cast<void>(DecodeTimeColumnEnds(bytes));
  if (const auto header = DecodeValueColumnHeader(0, bytes); header.ok()) FuzzStats(*header);
}

}  // namespace
}  // namespace tacho::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The number of values is not in a column: the first two bytes say what is asked for.
  const size_t count = data[0] + (size_t{data[1]} << 8) % 4096;
  tacho::storage::FuzzColumns(count, bytes.substr(2));
  tacho::storage::FuzzEncoding(bytes.substr(2));
  tacho::storage::FuzzRecords(bytes.substr(2));
  static_cast<void>(tacho::storage::DecodeTimeColumn(bytes.substr(2)));
  return 0;
}
