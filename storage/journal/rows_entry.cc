#include "storage/journal/rows_entry.h"

#include <cstring>

#include "proto/base/check.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

template <typename T>
void PutSpan(std::span<const T> values, std::string* out) {
  out->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

std::string EncodeRowsEntry(const Layout& layout, const RowsView& rows) {
  TACHO_CHECK(!layout.series.empty() && !rows.times.empty());
  TACHO_CHECK(rows.steps.size() == (layout.has_steps ? rows.times.size() : 0));
  TACHO_CHECK(rows.values.size() == rows.times.size() * layout.series.size());
  std::string out;
  constexpr size_t kHeaderMax = 40;
  out.reserve(kHeaderMax + rows.times.size_bytes() + rows.steps.size_bytes() +
              rows.values.size_bytes());
  PutVarint(layout.series.front()->job_id, &out);
  PutVarint(layout.id, &out);
  PutVarint(rows.times.size(), &out);
  PutVarint(layout.series.size(), &out);
  out.push_back(layout.has_steps ? 1 : 0);
  PutSpan(rows.times, &out);
  PutSpan(rows.steps, &out);
  PutSpan(rows.values, &out);
  return out;
}

size_t CountValues(const char* values, size_t count) {
  uint64_t present = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, values + i * sizeof(bits), sizeof(bits));
    // The top bit of x | -x is set but for x = 0. Every x86-64 does two of these at once, but
    // not two comparisons of 64 bits.
    bits ^= kStaleMarkerBits;
    present += (bits | (0 - bits)) >> 63;
  }
  return present;
}

std::optional<RowsEntry> DecodeRowsEntry(absl::string_view bytes) {
  ByteReader in(bytes);
  RowsEntry entry;
  const uint64_t job = in.Varint();
  entry.job = static_cast<JobId>(job);
  entry.layout = in.Varint();
  entry.rows = in.Varint();
  entry.columns = in.Varint();
  const uint8_t has_steps = in.Byte();
  // Each row and each column has bytes below, so larger numbers cannot be true; and their product
  // does not overflow.
  if (!in.ok() || job > UINT32_MAX || has_steps > 1 || entry.rows > bytes.size() ||
      entry.columns > bytes.size() || bytes.size() > UINT32_MAX) {
    return std::nullopt;
  }
  entry.has_steps = has_steps == 1;
  entry.times = in.Bytes(entry.rows * sizeof(int64_t));
  if (entry.has_steps) entry.steps = in.Bytes(entry.rows * sizeof(int64_t));
  entry.values = in.Bytes(entry.rows * entry.columns * sizeof(double));
  if (!in.AtEnd()) return std::nullopt;
  return entry;
}

}  // namespace tacho::storage
