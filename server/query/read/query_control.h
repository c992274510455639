// Stops a query between two pieces of work: for its deadline, its client or the collector. And
// counts what it has read.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"

namespace tacho::server::query {

// Thread-safe.
class QueryControl {
 public:
  // No deadline, never stopped.
  QueryControl() = default;
  // The clock is MonotonicNow(), except in tests. `draining` is not owned and may be null.
  QueryControl(absl::Duration timeout, std::function<absl::Time()> monotonic,
               const std::atomic<bool>* draining);

  void Cancel() { cancelled_ = true; }
  absl::Time deadline() const { return deadline_; }

  // OK: go on.
  //   CANCELLED           the client has gone.
  //   UNAVAILABLE         the collector is draining; the same query works after its restart.
  //   RESOURCE_EXHAUSTED  the query ran out of time; the text says how to narrow it.
  absl::Status Check() const;

  // Samples that the query has read so far.
  void CountRead(uint64_t samples) const {
    samples_read_.fetch_add(samples, std::memory_order_relaxed);
  }
  uint64_t samples_read() const { return samples_read_.load(std::memory_order_relaxed); }

 private:
  absl::Duration timeout_ = absl::InfiniteDuration();
  std::function<absl::Time()> monotonic_ = MonotonicNow;
  absl::Time deadline_ = absl::InfiniteFuture();
  const std::atomic<bool>* draining_ = nullptr;
  std::atomic<bool> cancelled_ = false;
  mutable std::atomic<uint64_t> samples_read_ = 0;
};

}  // namespace tacho::server::query
