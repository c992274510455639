// How much memory the process has, against how much it may have.
//
// Counted is what the kernel says is resident, less pages of files: open rows, the index, RocksDB's
// memtables and caches, gRPC's buffers, queues, and whatever nobody thought of. The parts have
// bounds of their own (docs/operations.md); this one holds when their sum is too much for the
// machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::server::edge {

// In the order in which it grows; each includes those before.
enum class Pressure {
  kNone,
  kHoldBack,  // From 80 %: only an eighth as much may wait for the disk; the rest is not read.
  kSlowDown,  // From 90 %: agents are asked to pause, and read from once a second.
  kRefuse,    // From 95 %: new streams and connections are refused, others read every 5 s.
};

// Bytes that are the process's own: resident, less those of files. 0 if that cannot be read.
uint64_t ResidentBytes();
// Four fifths of what the process's control group or the machine has.
uint64_t UsualBudget();

// Thread-safe but for Start(). Looks every `round`, on a thread of its own.
class MemoryBudget {
 public:
  struct Options {
    uint64_t budget_bytes = 0;  // 0: UsualBudget().
    absl::Duration round = absl::Milliseconds(100);
    std::function<uint64_t()> used = ResidentBytes;
    std::function<void()> looked;  // Called after each round. May be null.
  };
  explicit MemoryBudget(Options options);
  ~MemoryBudget();

  void Start();  // The rounds. Once.

  void SetBudget(uint64_t bytes);  // As Options::budget_bytes.

  Pressure pressure() const { return pressure_.load(std::memory_order_relaxed); }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t budget() const { return budget_.load(std::memory_order_relaxed); }

  // Looks now, as every round does.
  void Look();

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  std::atomic<uint64_t> budget_;
  std::atomic<uint64_t> used_{0};
  std::atomic<Pressure> pressure_{Pressure::kNone};
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tacho::server::edge
