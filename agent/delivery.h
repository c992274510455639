// What sources give goes into a spool, and from there over a stream to a collector. There is one of
// each; or in a cluster one of each for every shard that has something, so that a member that is
// away, or slow, holds up nothing but its own jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/sources/rows/source.h"
#include "agent/spool/sharded_spool.h"
#include "agent/spool/spool.h"
#include "agent/stream/clock_reports.h"
#include "agent/stream/sender.h"
#include "agent/stream/stream_options.h"

namespace tacho::agent {

struct DeliveryOptions {
  SpoolOptions spool;
  // The collectors: alternatives, the preferred one first, or the members of a cluster.
  std::vector<std::string> addresses;
  bool cluster = false;
  // The spare collectors: any of them, or of `addresses`, may be the owner of a shard.
  std::vector<std::string> spares;
  // As ShardedSpoolOptions has them.
  std::string home_job;
  std::string home_host;
  std::set<std::string> host_jobs;
  std::set<std::string, std::less<>> split_jobs;  // As collector.split_jobs has them.
  // The settings of one stream, without its addresses, shards and clock. Called for each.
  std::function<StreamOptions()> stream;
};

// Start() and Stop() are for one thread, once each; the sink is for one call at a time.
class Delivery {
 public:
  //   as Spool::Open() and ShardedSpool::Open().
  static absl::StatusOr<std::unique_ptr<Delivery>> Open(DeliveryOptions options);
  ~Delivery();

  RowSink* sink();

  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sender::Stop() of all streams, side by side. Nothing may be appended any more.
  void Stop(absl::Duration flush) ABSL_LOCKS_EXCLUDED(mutex_);

  // Thread-safe, as all below. The sums over all spools.
  SpoolStats Stats() const;
  // The offset of this host's clock, as the collector that keeps the host's job estimates it.
  std::optional<ClockOffset::Estimate> clock() const { return home_clock_->estimate(); }

 private:
  explicit Delivery(DeliveryOptions options);

  void AddOthers(uint32_t shard, std::vector<std::string>* addresses) const;
  void AddSender(uint32_t shard, Spool* spool) ABSL_LOCKS_EXCLUDED(mutex_);

  const DeliveryOptions options_;
  const std::shared_ptr<ClockOffset> home_clock_ = std::make_shared<ClockOffset>();
  // One of the two.
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<ShardedSpool> sharded_;

  absl::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  // By shard. They use the spools.
  std::map<uint32_t, std::unique_ptr<Sender>> senders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::agent
