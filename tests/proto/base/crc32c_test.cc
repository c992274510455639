#include "proto/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace tacho {
namespace {

uint32_t Crc32c(const std::string& bytes) { return ExtendCrc32c(0, bytes.data(), bytes.size()); }

// The check value of CRC-32C, and two vectors of RFC 3720, appendix B.4.
TEST(Crc32cTest, PublishedVectors) {
  EXPECT_EQ(ExtendCrc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\xff').data(), 32), 0x62a8ab43u);
}

TEST(Crc32cTest, PortableAndHardwareAgreeOnEveryLengthAndSplit) {
  std::string bytes;
  for (int i = 0; i < 70; ++i) bytes += static_cast<char>(i * 37 + 11);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const uint32_t whole = ExtendCrc32cPortable(0, bytes.data(), size);
    EXPECT_EQ(ExtendCrc32c(0, bytes.data(), size), whole);
    const size_t half = size / 2;
    const uint32_t first = ExtendCrc32c(0, bytes.data(), half);
    EXPECT_EQ(ExtendCrc32c(first, bytes.data() + half, size - half), whole) << size;
  }
}

TEST(Crc32cTest, OfNothingIsZero) { EXPECT_EQ(Crc32c(""), 0u); }

TEST(Crc32cTest, PiecesGiveTheChecksumOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 1500; ++i) bytes.push_back(static_cast<char>(i * 37));
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const uint32_t head = ExtendCrc32c(0, bytes.data(), cut);
    EXPECT_EQ(ExtendCrc32c(head, bytes.data() + cut, bytes.size() - cut), Crc32c(bytes)) << cut;
  }
}

}  // namespace
}  // namespace tacho
