// Samples in the XOR encoding of Prometheus' chunks. Pure.
//
// prometheus/prometheus, tsdb/chunkenc/xor.go and tsdb/docs/format/chunks.md ("XOR chunk data"):
//    | samples, 2 bytes big-endian | bits, the most significant first, zeros at the end |
// Times are in ms. The first sample has its time as a zigzag varint and its value as 64 bits; the
// second has the distance of its time as a varint; the others the change of that distance. From the
// second on, a value is the bits that differ from the value before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tacho::server::promread {

// Prometheus cuts its own chunks at so many samples, so its readers are made for that.
inline constexpr size_t kSamplesOfChunk = 120;

// One thread at a time.
class XorChunk {
 public:
  // Times ascend. The caller takes the chunk before it has more than 65,535 samples.
  void Append(int64_t time_ms, double value);

  size_t samples() const { return samples_; }
  int64_t first_ms() const { return first_ms_; }  // With samples only, as the next.
  int64_t last_ms() const { return last_ms_; }
  // The bytes of the chunk, which is empty afterwards.
  std::string Take();

 private:
  void AddBits(uint64_t bits, int count);  // The lowest `count` of them.
  void AppendWord(uint64_t word, size_t bytes);
  void AddByte(uint8_t byte) { AddBits(byte, 8); }
  void AddVarint(uint64_t value);
  void AddTimeChange(int64_t change);
  void AddValue(uint64_t bits);

  std::string bytes_;
  uint64_t pending_ = 0;  // Bits that are not in bytes_ yet: the lowest of it, fewer than 64.
  int pending_bits_ = 0;
  size_t samples_ = 0;
  int64_t first_ms_ = 0;
  int64_t last_ms_ = 0;
  uint64_t distance_ms_ = 0;  // From the sample before the last to the last.
  uint64_t value_ = 0;        // Bits of the last one.
  // The window of bits that the last value wrote; -1: there is none yet.
  int leading_ = -1;
  int trailing_ = 0;
};

}  // namespace tacho::server::promread
