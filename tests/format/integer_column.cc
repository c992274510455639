#include "tests/format/integer_column.h"

namespace format_page {
namespace {

std::vector<uint64_t> ReadPacked(Bytes* bytes, size_t count) {
  const unsigned width = bytes->Byte();
  if (width > 64) {
    bytes->Fail("packed numbers of more than 64 bits");
    return {};
  }
  std::vector<uint64_t> numbers;
  Bits bits(bytes);
  while (numbers.size() < count && bytes->ok()) numbers.push_back(bits.Take(width));
  return numbers;
}

std::vector<uint64_t> ReadNumbers(Bytes* bytes, unsigned form, size_t count) {
  switch (form) {
    case 0:
      bytes->Met("integers: equal");
      return std::vector<uint64_t>(count, 0);
    case 1:
      bytes->Met("integers: packed");
      return ReadPacked(bytes, count);
    case 2:
      bytes->Met("integers: buckets");
      return ReadBuckets(bytes, count);
    default:
      bytes->Fail("an unknown form of integers");
      return {};
  }
}

}  // namespace

std::vector<int64_t> ReadIntegers(Bytes* bytes, size_t count) {
  if (count == 0) return {};
  const uint8_t head = bytes->Byte();
  const unsigned order = head & 3;
  const bool folded = (head & 4) != 0;
  const bool divided = (head & 8) != 0;
  if (order > 2 || order > count || head >= 0x40) {
    bytes->Fail("an unknown kind of integer column");
    return {};
  }
  bytes->Met("integers: order " + std::to_string(order));
  // The first integer, then the first difference.
  uint64_t first[2] = {0, 0};
  for (unsigned i = 0; i < order; ++i) first[i] = static_cast<uint64_t>(bytes->Zigzag());

  std::vector<uint64_t> residuals;
  if (order == count) {
    bytes->Met("integers: no residuals");
  } else {
    const uint64_t base = static_cast<uint64_t>(bytes->Zigzag());
    const uint64_t divisor = divided ? bytes->Varint() : 1;
    if (folded) bytes->Met("integers: folded");
    if (divided) bytes->Met("integers: divisor");
    for (const uint64_t number : ReadNumbers(bytes, head >> 4, count - order)) {
      residuals.push_back(base +
                          divisor * (folded ? static_cast<uint64_t>(Unzigzag(number)) : number));
    }
  }
  if (!bytes->ok()) return {};

  std::vector<int64_t> integers;
  uint64_t integer = first[0];
  uint64_t difference = first[1];
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (order == 0) {
      integer = residuals[next++];
    } else if (i > 0) {
      if (order == 1) {
        difference = residuals[next++];
      } else if (i > 1) {
        difference += residuals[next++];
      }
      integer += difference;
    }
    integers.push_back(static_cast<int64_t>(integer));
  }
  return integers;
}

}  // namespace format_page
