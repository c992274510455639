// The quotas in force and how much of them is used: rates of agents and jobs, bytes that wait for
// the disk, memory of the process.
//
// A rate refuses and drops nothing: the collector takes what has come, and then does not read from
// the stream until enough time has passed to pay for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/edge/memory_budget.h"
#include "server/edge/token_bucket.h"
#include "server/process/reloadable.h"
#include "tacho/config/v1/quotas.pb.h"

namespace tacho::server::edge {

struct QuotasOptions {
  config::v1::Quotas config;
  uint64_t queue_bytes = 64u << 20;          // StoreOptions::queue_bytes.
  prometheus::Registry* registry = nullptr;  // Not owned.
  std::function<uint64_t()> resident = ResidentBytes;
  absl::Duration memory_round = absl::Milliseconds(100);  // How often memory is measured.
  // Bytes of messages that are on the disk and wait for the bucket (Store::unshipped_bytes()). Past
  // `max_unshipped` no stream is read. Null: no acknowledgement waits for a bucket. Must be
  // callable as long as the quotas are used.
  std::function<uint64_t()> unshipped;
  uint64_t max_unshipped = UINT64_MAX;
  // With `unshipped`: bytes that wait for the disk (Store::queued_bytes()). What waits for an
  // acknowledgement does not tell, for most of it waits for the bucket.
  std::function<uint64_t()> queued;
};

// Thread-safe.
class Quotas final : public process::Reloadable {
 public:
  enum class Limit { kNone, kAgentRate, kJobRate, kMemory, kDefinitions };
  // How long the collector must not read from a stream, and why.
  struct Wait {
    absl::Duration length;
    Limit limit = Limit::kNone;
  };

  explicit Quotas(QuotasOptions options);

  std::shared_ptr<TokenBucket> BucketOfAgent(absl::string_view agent_id);
  std::shared_ptr<TokenBucket> BucketOfJob(absl::string_view job);
  // Counts the series that an agent has defined: the same for all of its streams, one after the
  // other. At which rate is limits.definitions_per_second.
  std::shared_ptr<TokenBucket> DefinitionsOfAgent(absl::string_view agent_id, const Rate& rate);
  // Charges samples that have arrived to both buckets; `job` may be null.
  Wait Charge(uint64_t samples, TokenBucket* agent, TokenBucket* job);
  uint64_t agent_rate() const { return agent_rate_.load(std::memory_order_relaxed); }
  uint64_t job_rate() const { return job_rate_.load(std::memory_order_relaxed); }

  // Bytes that may wait, of a stream and of all. Memory pressure lowers them. If acknowledgements
  // wait for the bucket, a stream has so many times as much on its way; once the bucket is away,
  // what an agent sends is seen here until that is used up.
  static constexpr uint64_t kTimesWithBucket = 4;
  uint64_t stream_pending_bytes() const {
    return UnderPressure(stream_pending_bytes_) * (waits_for_bucket() ? kTimesWithBucket : 1);
  }
  uint64_t pending_bytes() const;
  // Whether so many bytes that wait for an acknowledgement are too many to read on.
  bool IsFull(uint64_t pending) const;
  // Whether acknowledgements wait for the bucket.
  bool waits_for_bucket() const { return unshipped_ != nullptr; }

  // quotas.hello_timeout, for streams that begin from now on.
  absl::Duration hello_timeout() const { return absl::Nanoseconds(hello_timeout_ns_.load()); }

  // OVERLOADED when memory is too short for another stream.
  absl::Status CheckNewStream() const;
  Pressure pressure() const { return memory_.pressure(); }
  void LookAtMemory() { memory_.Look(); }

  // tacho_quota_used shows it as pending_bytes, less what waits for the bucket.
  void SetPendingSource(std::function<uint64_t()> pending);

  absl::StatusOr<std::function<void()>> Prepare(const config::v1::Collector& config) override;

 private:
  uint64_t UnderPressure(const std::atomic<uint64_t>& bytes) const {
    const uint64_t usual = bytes.load(std::memory_order_relaxed);
    return pressure() == Pressure::kNone ? usual : usual / 8;
  }
  Rate RateOf(const std::atomic<uint64_t>& per_second) const {
    return {per_second.load(std::memory_order_relaxed), burst_ns_.load(std::memory_order_relaxed)};
  }
  void Apply(const config::v1::Quotas& config);
  // Of the bytes that wait for an acknowledgement.
  uint64_t WaitingForDisk(uint64_t pending) const;
  void OnLook();
  prometheus::Gauge& LimitOf(const char* quota) { return limits_.Add({{"quota", quota}}); }
  prometheus::Gauge& UsedOf(const char* quota) { return used_.Add({{"quota", quota}}); }

  const uint64_t queue_bytes_;
  const std::function<uint64_t()> unshipped_;
  const uint64_t max_unshipped_;
  const std::function<uint64_t()> queued_;
  std::atomic<uint64_t> agent_rate_{0};
  std::atomic<uint64_t> job_rate_{0};
  std::atomic<int64_t> burst_ns_{0};
  std::atomic<uint64_t> stream_pending_bytes_{0};
  std::atomic<uint64_t> pending_bytes_{0};
  std::atomic<int64_t> hello_timeout_ns_{0};
  TokenBuckets agents_;
  TokenBuckets jobs_;
  TokenBuckets definers_;
  prometheus::Family<prometheus::Gauge>& limits_;
  prometheus::Family<prometheus::Gauge>& used_;
  prometheus::Gauge& pending_used_;
  prometheus::Gauge& memory_used_;
  absl::Mutex mutex_;
  std::function<uint64_t()> pending_ ABSL_GUARDED_BY(mutex_);
  absl::Time trimmed_ = absl::InfinitePast();  // For the budget's thread.
  MemoryBudget memory_;                        // Last: its thread uses the others.
};

}  // namespace tacho::server::edge
