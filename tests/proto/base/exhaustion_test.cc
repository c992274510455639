#include "proto/base/exhaustion.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "gtest/gtest.h"

namespace tacho {
namespace {

template <typename Exception>
void ThrowInAThread(const Exception& exception) {
  ExplainExhaustion("program");
  std::thread([&] { throw exception; }).join();
}

// As if so much more could be had.
void LimitAddressSpace(uint64_t spare) {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * 4096 + spare;
  setrlimit(RLIMIT_AS, &limit);
}

TEST(ExhaustionDeathTest, NoMemoryIsASentenceAndAStatus) {
  EXPECT_EXIT(ThrowInAThread(std::bad_alloc()), testing::ExitedWithCode(1),
              "^program: no memory is left.*raise");
}

TEST(ExhaustionDeathTest, NoThreadIsASentenceAndAStatus) {
  const std::system_error no_thread(
      std::make_error_code(std::errc::resource_unavailable_try_again));
  EXPECT_EXIT(ThrowInAThread(no_thread), testing::ExitedWithCode(1),
              "^program: the system gives it no other thread.*raise");
}

TEST(ExhaustionDeathTest, AnAbortWithoutAddressSpaceIsASentenceAndAStatus) {
  const auto abort_in = [](uint64_t spare) {
    ExplainExhaustion("program");
    LimitAddressSpace(spare);
    std::abort();
  };
  EXPECT_EXIT(abort_in(1 << 20), testing::ExitedWithCode(1),
              "^program: hardly any memory is left; its address space is limited to [0-9]+ MiB");
  EXPECT_EXIT(abort_in(uint64_t{1} << 30), testing::KilledBySignal(SIGABRT), "");
}

TEST(ExhaustionDeathTest, EveryOtherAbortStaysOne) {
  EXPECT_EXIT(ThrowInAThread(std::runtime_error("x")), testing::KilledBySignal(SIGABRT), "");
  const std::system_error other(std::make_error_code(std::errc::permission_denied));
  EXPECT_EXIT(ThrowInAThread(other), testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace tacho
