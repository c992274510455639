#include "tests/format/value_column.h"

#include <bit>

#include "tests/format/integer_column.h"

namespace format_page {
namespace {

std::vector<uint64_t> ReadColumn(Bytes* bytes, size_t count, int depth);

// Ordered bits and back: the same in both directions.
uint64_t Reorder64(uint64_t bits) { return bits >> 63 == 0 ? bits : bits ^ ~uint64_t{0} >> 1; }
uint32_t Reorder32(uint32_t bits) { return bits >> 31 == 0 ? bits : bits ^ ~uint32_t{0} >> 1; }

uint64_t WidenedFloat(uint32_t bits) {
  return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
}

std::vector<uint64_t> ReadGaps(Bytes* bytes, size_t count, int depth) {
  const uint8_t name = bytes->Byte();
  uint64_t gap = kStaleMarker;
  if (name == 1) gap = 0x7ff8000000000000;
  if (name == 2) gap = bytes->Little(8);
  if (name > 2) bytes->Fail("gaps of a value without a name");
  bytes->Met("values: gaps " + std::to_string(name));
  const uint64_t runs = bytes->Varint();
  if (runs > count) bytes->Fail("more runs than rows");
  if (!bytes->ok()) return {};
  const std::vector<int64_t> present = ReadIntegers(bytes, runs);
  const std::vector<int64_t> absent = ReadIntegers(bytes, runs);
  if (!bytes->ok()) return {};
  std::vector<bool> is_gap;
  size_t kept = 0;
  for (size_t i = 0; i < runs; ++i) {
    const uint64_t values = static_cast<uint64_t>(present[i]);
    const uint64_t gaps = static_cast<uint64_t>(absent[i]);
    if (values > count || gaps > count || is_gap.size() + values + gaps > count) break;
    is_gap.insert(is_gap.end(), values, false);
    is_gap.insert(is_gap.end(), gaps, true);
    kept += values;
  }
  if (is_gap.size() != count) {
    bytes->Fail("runs that do not add up to the rows");
    return {};
  }
  const std::vector<uint64_t> values =
      kept == 0 ? std::vector<uint64_t>() : ReadColumn(bytes, kept, depth + 1);
  if (!bytes->ok()) return {};
  std::vector<uint64_t> column;
  size_t next = 0;
  for (const bool here : is_gap) column.push_back(here ? gap : values[next++]);
  return column;
}

std::vector<uint64_t> ReadOrdered(Bytes* bytes, size_t count, bool floats) {
  bytes->Met(floats ? "values: ordered floats" : "values: ordered doubles");
  std::vector<uint64_t> column;
  for (const int64_t integer : ReadIntegers(bytes, count)) {
    column.push_back(floats ? WidenedFloat(Reorder32(static_cast<uint32_t>(integer)))
                            : Reorder64(static_cast<uint64_t>(integer)));
  }
  return column;
}

void ReadExceptions(Bytes* bytes, int depth, std::vector<uint64_t>* column) {
  bytes->Met("values: exceptions");
  const uint64_t count = bytes->Varint();
  if (count == 0 || count > column->size()) bytes->Fail("a wrong number of exceptions");
  if (!bytes->ok()) return;
  const std::vector<int64_t> rows = ReadIntegers(bytes, count);
  if (!bytes->ok()) return;
  const std::vector<uint64_t> values = ReadColumn(bytes, count, depth + 1);
  for (size_t i = 0; i < count && bytes->ok(); ++i) {
    const uint64_t row = static_cast<uint64_t>(rows[i]);
    if (row >= column->size()) {
      bytes->Fail("an exception in a row that there is not");
    } else {
      (*column)[row] = values[i];
    }
  }
}

std::vector<uint64_t> ReadQuotients(Bytes* bytes, size_t count, uint8_t head, int depth) {
  const bool floats = (head & 0x08) != 0;
  bytes->Met(floats ? "values: quotients as floats" : "values: quotients");
  const uint64_t divisor = bytes->Varint();
  if (divisor < 1 || divisor > 1'000'000'000'000'000) bytes->Fail("a divisor out of bounds");
  const std::vector<int64_t> numerators = ReadIntegers(bytes, count);
  std::vector<int64_t> steps(count, 0);
  if ((head & 0x20) != 0) {
    bytes->Met("values: steps");
    steps = ReadIntegers(bytes, count);
  }
  if (!bytes->ok()) return {};
  std::vector<uint64_t> column;
  for (size_t i = 0; i < count; ++i) {
    const double quotient = static_cast<double>(numerators[i]) / static_cast<double>(divisor);
    const uint64_t step = static_cast<uint64_t>(steps[i]);
    if (floats) {
      const uint32_t ordered = Reorder32(std::bit_cast<uint32_t>(static_cast<float>(quotient)));
      column.push_back(WidenedFloat(Reorder32(ordered + static_cast<uint32_t>(step))));
    } else {
      const uint64_t ordered = Reorder64(std::bit_cast<uint64_t>(quotient));
      column.push_back(Reorder64(ordered + step));
    }
  }
  if ((head & 0x10) != 0) ReadExceptions(bytes, depth, &column);
  return column;
}

std::vector<uint64_t> ReadDictionary(Bytes* bytes, size_t count, int depth) {
  bytes->Met("values: dictionary");
  const uint64_t size = bytes->Varint();
  if (size == 0 || size > count) {
    bytes->Fail("a dictionary of a wrong size");
    return {};
  }
  const std::vector<uint64_t> words = ReadColumn(bytes, size, depth + 1);
  if (!bytes->ok()) return {};
  std::vector<uint64_t> column;
  for (const int64_t index : ReadIntegers(bytes, count)) {
    if (static_cast<uint64_t>(index) >= size) {
      bytes->Fail("a word that the dictionary does not have");
      return {};
    }
    column.push_back(words[static_cast<size_t>(index)]);
  }
  return column;
}

std::vector<uint64_t> ReadColumn(Bytes* bytes, size_t count, int depth) {
  if (depth > 3) {
    bytes->Fail("columns in columns, too deep");
    return {};
  }
  if (depth > 0) bytes->Met("values: in a column, depth " + std::to_string(depth));
  const uint8_t head = bytes->Byte();
  const uint8_t flags = head & 0xf8;
  const uint8_t known = (head & 7) == 3 ? 0x08 : (head & 7) == 4 ? 0x38 : 0;
  if ((flags & ~known) != 0) bytes->Fail("unknown flags");
  switch (head & 7) {
    case 0: {
      bytes->Met("values: raw");
      std::vector<uint64_t> column;
      while (column.size() < count && bytes->ok()) column.push_back(bytes->Little(8));
      return column;
    }
    case 1:
      bytes->Met("values: constant");
      return std::vector<uint64_t>(count, bytes->Little(8));
    case 2:
      return ReadGaps(bytes, count, depth);
    case 3:
      return ReadOrdered(bytes, count, (flags & 0x08) != 0);
    case 4:
      return ReadQuotients(bytes, count, head, depth);
    case 5:
      return ReadDictionary(bytes, count, depth);
    default:
      bytes->Fail("an unknown encoding of values");
      return {};
  }
}

}  // namespace

std::vector<uint64_t> ReadValues(Bytes* bytes, size_t count) {
  std::vector<uint64_t> values = ReadColumn(bytes, count, 0);
  if (bytes->ok() && values.size() != count) bytes->Fail("a column of too few values");
  return values;
}

}  // namespace format_page
