// The bucket of a collector's history, as its configuration names it: opened, counted, and with a
// cache on the disk. The store does the rest (storage/history_keeper.h).
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "storage/bucket/proven_bucket.h"
#include "storage/history/piece_cache.h"
#include "storage/options.h"
#include "storage/store.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::history {

// Thread-safe. Must outlive the store that has its history().
class HistoryBucket {
 public:
  struct Options {
    config::v1::Collector config;  // Durations in ns. bucket.url is not empty.
    // Which of the shards in the bucket is this collector's, and how many there are.
    uint32_t shard = 0;
    uint32_t shards = 1;
    prometheus::Registry* registry = nullptr;  // Not owned; must outlive this.
    log::Log log;
  };

  // Sends nothing: the bucket may be away. Creates the directory of the cache.
  //   INVALID_ARGUMENT  a key of `bucket` is wrong; the sentence names it.
  //   UNAVAILABLE       the directory of the cache cannot be made or read.
  static absl::StatusOr<std::unique_ptr<HistoryBucket>> Open(Options options);
  HistoryBucket(const HistoryBucket&) = delete;
  HistoryBucket& operator=(const HistoryBucket&) = delete;

  // What of the configuration can be wrong without a look at the bucket or the disk.
  //   INVALID_ARGUMENT  as Open(), or `cluster` asks for a bucket and there is none.
  static absl::Status Check(const config::v1::Collector& config);

  storage::HistoryOptions history();
  // Without its callback.
  storage::SharedOptions shared() const;

  // Counts a request to the bucket that was made beside this.
  void Count(const storage::FinishedRequest& request);
  // Requests so far.
  struct Use {
    uint64_t writes = 0;  // Puts and lists.
    uint64_t reads = 0;
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    absl::Duration during;
  };
  Use use() const;

  // For the metrics page: the cache's figures, whether days reach the bucket, and what waits for
  // it.
  std::vector<prometheus::MetricFamily> Families(const storage::Store& store) const;

 private:
  explicit HistoryBucket(Options options);

  void Report(const storage::ProbeReport& report);

  const Options options_;
  const absl::Time opened_ = MonotonicNow();
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Counter>& retries_;
  prometheus::Counter& bytes_sent_;
  prometheus::Counter& bytes_received_;
  std::atomic<uint64_t> writes_ = 0;
  std::atomic<uint64_t> reads_ = 0;
  std::unique_ptr<storage::PieceCache> pieces_;
  std::unique_ptr<storage::ProvenBucket> bucket_;
};

}  // namespace tacho::server::history
