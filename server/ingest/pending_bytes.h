// Bytes of all streams together that wait for the disk, and the streams that wait for them to
// become fewer: read further, their messages would find the store's queue full and end them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/ingest/ack_pacer.h"

namespace tacho::server::ingest {

// Thread-safe.
class PendingBytes {
 public:
  struct Options {
    std::function<uint64_t()> limit = [] { return UINT64_MAX; };
    AckPacer* pacer = nullptr;  // Not owned. Wakes those who wait; nullptr: nobody ever does.
  };
  PendingBytes() = default;
  // Before anything is added.
  void Configure(Options options) { options_ = std::move(options); }

  void Add(uint64_t bytes) { bytes_.fetch_add(bytes); }
  void Remove(uint64_t bytes);
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool IsFull() const { return bytes_.load() > options_.limit(); }

  // The stream is woken once when there is room, in the order of the calls. To be called by a
  // stream that has nothing pending itself: others are woken by what becomes of theirs.
  void AwaitRoom(std::weak_ptr<Paced> stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Those woken for each message that leaves: one takes its place, and some may have nothing to
  // read.
  static constexpr size_t kWokenAtOnce = 4;

  void Wake(size_t most) ABSL_LOCKS_EXCLUDED(mutex_);

  Options options_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<size_t> waiting_{0};
  absl::Mutex mutex_;
  std::deque<std::weak_ptr<Paced>> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::server::ingest
