// Brings the measurements of simulated chips to a collector over Ingest, in series of job "hosts"
// with the labels host and chip: one agent for the whole fleet, as an exporter of a cluster is.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tacho/v1/ingest.pb.h"
#include "tests/support/fleet/chip_model.h"

namespace tacho::fleet {

// One thread may use it; it sends on another one.
class ChipFeed {
 public:
  // Rows that wait while the collector is away; beyond, the oldest are dropped.
  static constexpr size_t kMaxWaiting = 100'000;

  // `generation` must be another one for each process that sends to the same collector.
  ChipFeed(std::string collector, uint64_t generation);
  ChipFeed(const ChipFeed&) = delete;
  ChipFeed& operator=(const ChipFeed&) = delete;
  ~ChipFeed();  // Drops what still waits.

  // One row of a host: the values of its chips, one after the other.
  void Add(const std::string& host, int64_t time_ns,
           std::vector<std::array<double, kChipMetrics>> chips) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Row {
    std::string host;
    int64_t time_ns = 0;
    std::vector<std::array<double, kChipMetrics>> chips;
  };

  void Run();
  const v1::Layout* LayoutOf(const Row& row);

  const std::string collector_;
  const uint64_t generation_;
  std::map<std::string, v1::Layout> layouts_;  // By host; of the sending thread.

  absl::Mutex mutex_;
  std::deque<Row> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sender_;
};

}  // namespace tacho::fleet
