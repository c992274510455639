// Limits on what agents send, as the configuration in force says it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/base/log.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::ingest {

// Thread-safe, without a lock: each limit by itself is what the last reload said. A stream whose
// Welcome had other limits is ended by the first message that is too large now, and gets the new
// ones when it comes back.
class IngestLimits final : public process::Reloadable {
 public:
  explicit IngestLimits(const config::v1::Collector::Ingest& config, log::Log log = {})
      : log_(std::move(log)), started_message_bytes_(config.max_message_bytes()) {
    Apply(config);
  }

  // Never above what it was at the start, for which gRPC's own limit was set.
  uint64_t max_message_bytes() const { return Get(max_message_bytes_); }
  uint32_t max_rows_per_batch() const { return Get(max_rows_per_batch_); }
  uint32_t max_layouts_per_stream() const { return Get(max_layouts_per_stream_); }
  uint32_t max_series_per_layout() const { return Get(max_series_per_layout_); }
  uint64_t max_columns_per_stream() const { return Get(max_columns_per_stream_); }
  int64_t max_future() const { return Get(max_future_ns_); }  // ns.
  uint32_t max_streams() const { return Get(max_streams_); }

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override {
    return [this, ingest = config.ingest()] {
      if (ingest.max_message_bytes() > started_message_bytes_) {
        log_.Warn("ingest.max_message_bytes above that of the start needs a restart",
                  {{"asked", ingest.max_message_bytes()}, {"in_force", started_message_bytes_}});
      }
      Apply(ingest);
    };
  }

 private:
  template <typename T>
  static T Get(const std::atomic<T>& limit) {
    return limit.load(std::memory_order_relaxed);
  }
  void Apply(const config::v1::Collector::Ingest& config) {
    max_message_bytes_ = std::min(config.max_message_bytes(), started_message_bytes_);
    max_rows_per_batch_ = config.max_rows_per_batch();
    max_layouts_per_stream_ = config.max_layouts_per_stream();
    max_series_per_layout_ = config.max_series_per_layout();
    max_columns_per_stream_ = config.max_columns_per_stream();
    max_future_ns_ = config.max_future();
    max_streams_ = config.max_streams();
  }

  const log::Log log_;
  const uint64_t started_message_bytes_;
  std::atomic<uint64_t> max_message_bytes_{0};
  std::atomic<uint32_t> max_rows_per_batch_{0};
  std::atomic<uint32_t> max_layouts_per_stream_{0};
  std::atomic<uint32_t> max_series_per_layout_{0};
  std::atomic<uint64_t> max_columns_per_stream_{0};
  std::atomic<int64_t> max_future_ns_{0};
  std::atomic<uint32_t> max_streams_{0};
};

}  // namespace tacho::server::ingest
