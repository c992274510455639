// Columns of integers, as ColumnCodec and every encoding of values writes them.
//
//   byte             bits 0-1 order k: 0 the integers themselves, 1 their differences, 2 the
//                    differences of those
//                    bit 2 folded: numbers are zig-zag, else counted from the smallest
//                    bit 3 a divisor follows
//                    bits 4-5 form: 0 all are equal, 1 packed, 2 buckets
//   zig-zag varint   k times: the first integer, the first difference
//   zig-zag varint   base, left out if k integers are all there are
//   varint           divisor g, else it is 1
//   numbers          one for each integer (difference, ..) left: see buckets.h; it is
//                    base + g * (folded ? unzigzag(number) : number)
//
// All arithmetic is modulo 2^64, so every int64 round-trips.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "storage/codec/bytes.h"

namespace tacho::storage {

// How integers are best written.
struct IntegerPlan {
  unsigned order = 0;
  bool folded = false;
  double bits = 0;  // Bits that a column of them takes.

  // Plans a column of `count` integers by a sample: runs of neighbours in it, all of them `run`
  // long except the last, which may be shorter. No integers take no bits.
  static IntegerPlan Of(std::span<const int64_t> sample, size_t run, size_t count);
};

void AppendIntegers(std::span<const int64_t> integers, std::string* out);
void AppendIntegers(std::span<const int64_t> integers, const IntegerPlan& plan, std::string* out);
// Takes a column off the front of padded bytes (see bit_stream.h); false if it is damaged.
bool TakeIntegers(ByteReader* in, std::span<int64_t> integers);

}  // namespace tacho::storage
