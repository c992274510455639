// Making a load's messages on every core, before anything is timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace tacho::bench {

// Calls `work` with 0 to count - 1, each once, in any order, on several threads.
inline void ParallelFor(uint32_t count, const std::function<void(uint32_t)>& work) {
  std::atomic<uint32_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back([&] {
      for (uint32_t at = next++; at < count; at = next++) work(at);
    });
  }
}

}  // namespace tacho::bench
