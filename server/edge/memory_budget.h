// Compares the memory that the process uses with what it may use.
//
// It counts what the kernel reports as resident, without pages of files. That includes open rows,
// the index, RocksDB's memtables and caches, gRPC's buffers and queues. Each of these has its own
// limit (docs/operations.md); this one holds when their sum is too much for the machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "proto/base/background_thread.h"

namespace tacho::server::edge {

// In rising order; each level includes those before it.
enum class Pressure {
  kNone,
  kHoldBack,  // From 80 %: only an eighth as much may wait for the disk; the rest stays unread.
  kSlowDown,  // From 90 %: agents are asked to pause, and read from once a second.
  kRefuse,    // From 95 %: new streams and connections are refused, others read every 5 s.
};

// Bytes that are the process's own: resident, less those of files. 0 if that cannot be read.
uint64_t ResidentBytes();
// Four fifths of what the process's control group or the machine has.
uint64_t UsualBudget();

// Thread-safe but for Start(). Measures every `round`, on a thread of its own.
class MemoryBudget {
 public:
  struct Options {
    uint64_t budget_bytes = 0;  // 0: UsualBudget().
    absl::Duration round = absl::Milliseconds(100);
    std::function<uint64_t()> used = ResidentBytes;
    std::function<void()> looked;  // Called after each round. May be null.
  };
  explicit MemoryBudget(Options options);

  void Start();  // Starts the rounds. Once.

  void SetBudget(uint64_t bytes);  // As Options::budget_bytes.

  Pressure pressure() const { return pressure_.load(std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t budget() const { return budget_.load(std::memory_order_relaxed); }

  // Measures now, as every round does.
  void Look();

 private:
  const Options options_;
  std::atomic<uint64_t> budget_;
  std::atomic<uint64_t> used_{0};
  std::atomic<Pressure> pressure_{Pressure::kNone};
  RepeatingThread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::edge
