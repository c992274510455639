#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "client/tfevents/record.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::client {
namespace {

using ::tacho::testing::Record;
using Kind = RecordView::Kind;

constexpr uint64_t kLimit = 1024;

uint32_t Word(const std::string& bytes, size_t offset) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// Checksums of event files that TensorBoard's own tests have, and of ones worked out by hand.
TEST(TfeventsRecordTest, ChecksumsAgreeWithPublishedVectors) {
  EXPECT_EQ(MaskedCrc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(MaskedCrc32c(std::string(32, '\0')), MaskCrc32c(0x8a9136aau));
  const std::string version =
      Record(absl::HexStringToBytes("090000803899d6d7411a0d") + "brain.Event:2");
  EXPECT_EQ(Word(version, 8), 0x224b7fa3u);
  EXPECT_EQ(Word(version, version.size() - 4), 0xab364b12u);
  const std::string simple =
      Record(absl::HexStringToBytes("09000000000000f03f10072a0d0a0b0a046c6f7373150000c03f"));
  EXPECT_EQ(Word(simple, 8), 0x2dd89b12u);
  EXPECT_EQ(Word(simple, simple.size() - 4), 0x977032deu);
}

TEST(TfeventsRecordTest, WholeRecordIsReadAndTheNextLeftAlone) {
  const std::string bytes = Record("payload") + "rest";
  const RecordView record = ReadRecord(bytes, kLimit);
  EXPECT_EQ(record.kind, Kind::kRecord);
  EXPECT_EQ(record.payload, "payload");
  EXPECT_EQ(record.bytes, bytes.size() - 4);
}

TEST(TfeventsRecordTest, EmptyPayloadIsARecord) {
  const RecordView record = ReadRecord(Record(""), kLimit);
  EXPECT_EQ(record.kind, Kind::kRecord);
  EXPECT_EQ(record.bytes, kRecordOverheadBytes);
}

TEST(TfeventsRecordTest, EveryTruncationNeedsMore) {
  const std::string bytes = Record("payload");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const RecordView record = ReadRecord(bytes.substr(0, size), kLimit);
    EXPECT_EQ(record.kind, Kind::kNeedMore) << size;
    EXPECT_EQ(record.bytes, size < kRecordHeaderBytes ? kRecordHeaderBytes : bytes.size()) << size;
  }
}

TEST(TfeventsRecordTest, EveryFlippedBitIsNoticed) {
  const std::string good = Record("payload");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(ReadRecord(bytes, kLimit).kind, Kind::kCorrupt) << bit;
  }
}

TEST(TfeventsRecordTest, LongRecordIsSkippedWithoutLookingAtIt) {
  const std::string bytes = Record(std::string(kLimit + 1, 'x'));
  const RecordView record = ReadRecord(bytes.substr(0, kRecordHeaderBytes), kLimit);
  EXPECT_EQ(record.kind, Kind::kTooLarge);
  EXPECT_EQ(record.bytes, bytes.size());
}

TEST(TfeventsRecordTest, LengthBeyondAnyFileIsCorruptThoughItsChecksumIsRight) {
  for (const uint64_t length : {UINT64_MAX, uint64_t{INT64_MAX}, uint64_t{INT64_MAX} - 15}) {
    std::string header(8, '\0');
    std::memcpy(header.data(), &length, 8);
    const uint32_t crc = MaskedCrc32c(header);
    header.append(reinterpret_cast<const char*>(&crc), 4);
    EXPECT_EQ(ReadRecord(header, UINT64_MAX).kind, Kind::kCorrupt) << length;
  }
}

}  // namespace
}  // namespace tacho::client
