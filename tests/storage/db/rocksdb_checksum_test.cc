#include "storage/crc32c.h"

#include <dlfcn.h>

#include <cstdint>
#include <random>
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
  for (int i = 0; i < 1500; ++i) bytes.push_back(static_cast<char>(i * 37));
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const uint32_t head = Crc32c(absl::string_view(bytes).substr(0, cut));
    EXPECT_EQ(ExtendCrc32c(head, absl::string_view(bytes).substr(cut)), Crc32c(bytes)) << cut;
  }
}

#if defined(__x86_64__)
// What RocksDB has written with our function must be readable with its own.
TEST(Crc32cTest, TakesThePlaceOfTheSameFunctionOfRocksDb) {
  Dl_info library{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "rocksdb_open"), &library), 0);
  void* const handle = dlopen(library.dli_fname, RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  constexpr char kExtend[] = "_ZN7rocksdb6crc32c6ExtendEjPKcm";
  using Extend = uint32_t (*)(uint32_t, const char*, size_t);
  const auto theirs = reinterpret_cast<Extend>(dlsym(handle, kExtend));
  if (theirs == nullptr) GTEST_SKIP() << "this RocksDB has no such function";
  const auto used = reinterpret_cast<Extend>(dlsym(RTLD_DEFAULT, kExtend));
  EXPECT_NE(used, theirs) << "RocksDB uses its own";
  std::mt19937 random(1);
  std::string bytes;
  for (int i = 0; i < 3000; ++i) {
    const auto start = static_cast<uint32_t>(random());
    EXPECT_EQ(used(start, bytes.data(), bytes.size()), theirs(start, bytes.data(), bytes.size()));
    bytes.push_back(static_cast<char>(random()));
  }
}
#endif

}  // namespace
}  // namespace tacho::storage
