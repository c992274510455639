#include "server/promread/snappy_message.h"

#include <snappy.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "storage/codec/bytes.h"

namespace tacho::server::promread {
namespace {

constexpr char kTag = 0x0a;

std::string Unpacked(const std::string& packed) {
  std::string bytes;
  EXPECT_TRUE(snappy::IsValidCompressedBuffer(packed.data(), packed.size()));
  EXPECT_TRUE(snappy::Uncompress(packed.data(), packed.size(), &bytes));
  return bytes;
}

TEST(SnappyMessageTest, NothingIsTheEmptyMessage) {
  EXPECT_EQ(Unpacked(SnappyMessage().Take()), "");
  SnappyMessage message;
  message.BeginField();
  message.EndField(kTag);
  EXPECT_EQ(Unpacked(std::move(message).Take()), std::string("\x0a\x00", 2));
}

// Fields around the length of a block and of Snappy's fragments, in parts of all lengths; some of
// them cannot be packed.
TEST(SnappyMessageTest, BecomesWhatWasWritten) {
  std::mt19937_64 random(22);
  for (const size_t around : {0u, 59u, 128u, 16'384u, 65'536u, 1u << 20, 3u << 20}) {
    for (const size_t fields : {1u, 3u}) {
      SnappyMessage message;
      std::string expected;
      for (size_t field = 0; field < fields; ++field) {
        std::string value(around + random() % 5, '\0');
        const bool noise = random() % 2 == 0;
        for (char& byte : value) byte = static_cast<char>(noise ? random() : random() % 3);
        expected.push_back(kTag);
        storage::PutString(value, &expected);
        message.BeginField();
        for (size_t at = 0; at < value.size();) {
          const size_t size = 1 + random() % (value.size() / 3 + 1);
          message.Append(absl::string_view(value).substr(at, size));
          at += size;
        }
        message.EndField(kTag);
      }
      const std::string packed = std::move(message).Take();
      ASSERT_EQ(Unpacked(packed), expected) << around << " " << fields;
      EXPECT_LE(packed.size(), snappy::MaxCompressedLength(expected.size()));
    }
  }
}

}  // namespace
}  // namespace tacho::server::promread
