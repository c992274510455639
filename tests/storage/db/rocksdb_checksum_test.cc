// RocksDB checksums its log by our function; see the end of storage/db/directory_check.cc.
#include <dlfcn.h>

#include <cstdint>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "storage/db/database.h"

namespace tacho::storage {
namespace {

#if defined(__x86_64__)
// What RocksDB has written with our function must be readable with its own.
TEST(RocksDbChecksumTest, TakesThePlaceOfTheSameFunctionOfRocksDb) {
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
