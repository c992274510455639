#include "server/aggregate/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "proto/base/check.h"

namespace tacho::server::aggregate {
namespace {

constexpr size_t kMaxThreads = 4;

}  // namespace

size_t ScrapeThreads() {
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
}

void ParallelFor(size_t count, size_t threads, absl::FunctionRef<void(size_t)> work) {
  TACHO_CHECK(threads > 0);
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(threads, count)) {
    try {
      others.emplace_back(run);
    } catch (const std::system_error&) {
      break;
    }
  }
  run();
  for (std::thread& other : others) other.join();
}

}  // namespace tacho::server::aggregate
