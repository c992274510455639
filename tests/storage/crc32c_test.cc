#include "storage/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace tacho::storage {
namespace {

// RFC 3720, B.4, and the check value of the CRC catalogues.
TEST(Crc32cTest, GivesThePublishedChecksums) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, PiecesGiveTheChecksumOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes.push_back(static_cast<char>(i * 37));
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const uint32_t head = Crc32c(absl::string_view(bytes).substr(0, cut));
    EXPECT_EQ(ExtendCrc32c(head, absl::string_view(bytes).substr(cut)), Crc32c(bytes)) << cut;
  }
}

}  // namespace
}  // namespace tacho::storage
