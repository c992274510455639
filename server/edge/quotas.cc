#include "server/edge/quotas.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "server/errors/error_table.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::edge {
namespace {

// A wait shorter than this costs more than it holds back; the debt stays and is paid with the next.
constexpr absl::Duration kLeastWait = absl::Milliseconds(20);
constexpr absl::Duration kSlowDownWait = absl::Seconds(1);
constexpr absl::Duration kRefuseWait = absl::Seconds(5);
constexpr absl::Duration kTrimEvery = absl::Seconds(2);

int64_t NowNs() { return absl::ToUnixNanos(MonotonicNow()); }

}  // namespace

Quotas::Quotas(QuotasOptions options)
    : queue_bytes_(options.queue_bytes),
      unshipped_(std::move(options.unshipped)),
      max_unshipped_(options.max_unshipped),
      queued_(std::move(options.queued)),
      limits_(metrics::GaugeFamily(options.registry, "tacho_quota_limit")),
      used_(metrics::GaugeFamily(options.registry, "tacho_quota_used")),
      pending_used_(UsedOf("pending_bytes")),
      memory_used_(UsedOf("memory_bytes")),
      memory_({.budget_bytes = options.config.memory_bytes(),
               .round = options.memory_round,
               .used = std::move(options.resident),
               .looked = [this] { OnLook(); }}) {
  Apply(options.config);
  memory_.Start();
}

void Quotas::Apply(const config::v1::Quotas& config) {
  agent_rate_ = config.agent_samples_per_second();
  job_rate_ = config.job_samples_per_second();
  burst_ns_ = config.burst();
  stream_pending_bytes_ = config.stream_pending_bytes();
  // Half, so that the messages under way when streams stop reading still find room.
  pending_bytes_ = config.pending_bytes() == 0 ? queue_bytes_ / 2 : config.pending_bytes();
  hello_timeout_ns_ = config.hello_timeout();
  memory_.SetBudget(config.memory_bytes());
  LimitOf("agent_samples_per_second").Set(static_cast<double>(agent_rate()));
  LimitOf("job_samples_per_second").Set(static_cast<double>(job_rate()));
  LimitOf("stream_pending_bytes").Set(static_cast<double>(config.stream_pending_bytes()));
  LimitOf("pending_bytes").Set(static_cast<double>(pending_bytes_.load()));
  LimitOf("memory_bytes").Set(static_cast<double>(memory_.budget()));
}

absl::StatusOr<std::function<void()>> Quotas::Prepare(const config::v1::Collector& config) {
  if (config.quotas().pending_bytes() > queue_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("quotas.pending_bytes: ", config.quotas().pending_bytes(),
                     " is more than storage.journal_queue_bytes, ", queue_bytes_));
  }
  return [this, quotas = config.quotas()] { Apply(quotas); };
}

uint64_t Quotas::pending_bytes() const { return UnderPressure(pending_bytes_); }

bool Quotas::IsFull(uint64_t pending) const {
  if (unshipped_ == nullptr) return pending > pending_bytes();
  if (unshipped_() >= max_unshipped_) return pending > 0;
  return queued_() > pending_bytes();
}

std::shared_ptr<TokenBucket> Quotas::BucketOfAgent(absl::string_view agent_id) {
  return agents_.Find(agent_id, RateOf(agent_rate_), NowNs());
}

std::shared_ptr<TokenBucket> Quotas::BucketOfJob(absl::string_view job) {
  return jobs_.Find(job, RateOf(job_rate_), NowNs());
}

std::shared_ptr<TokenBucket> Quotas::DefinitionsOfAgent(absl::string_view agent_id,
                                                        const Rate& rate) {
  return definers_.Find(agent_id, rate, NowNs());
}

Quotas::Wait Quotas::Charge(uint64_t samples, TokenBucket* agent, TokenBucket* job) {
  Wait wait;
  const auto consider = [&wait](absl::Duration length, Limit limit) {
    if (length >= kLeastWait && length > wait.length) wait = {length, limit};
  };
  const Rate of_agent = RateOf(agent_rate_);
  const Rate of_job = RateOf(job_rate_);
  if (of_agent.per_second != 0 || of_job.per_second != 0) {
    const int64_t now = NowNs();
    if (agent != nullptr) {
      consider(absl::Nanoseconds(agent->Take(samples, of_agent, now)), Limit::kAgentRate);
    }
    if (job != nullptr) {
      consider(absl::Nanoseconds(job->Take(samples, of_job, now)), Limit::kJobRate);
    }
  }
  if (pressure() >= Pressure::kSlowDown) {
    consider(pressure() == Pressure::kRefuse ? kRefuseWait : kSlowDownWait, Limit::kMemory);
  }
  return wait;
}

absl::Status Quotas::CheckNewStream() const {
  if (pressure() < Pressure::kRefuse) return absl::OkStatus();
  return errors::ErrorOf(
      errors::Failure::kOverloaded,
      absl::StrCat("the collector has ", memory_.used(), " of the ", memory_.budget(),
                   " bytes of memory that quotas.memory_bytes allows"));
}

void Quotas::SetPendingSource(std::function<uint64_t()> pending) {
  absl::MutexLock lock(&mutex_);
  pending_ = std::move(pending);
}

uint64_t Quotas::WaitingForDisk(uint64_t pending) const {
  return unshipped_ == nullptr ? pending : queued_();
}

void Quotas::OnLook() {
  memory_used_.Set(static_cast<double>(memory_.used()));
  {
    absl::MutexLock lock(&mutex_);
    if (pending_) pending_used_.Set(static_cast<double>(WaitingForDisk(pending_())));
  }
  const absl::Time now = MonotonicNow();
  if (pressure() == Pressure::kNone || now - trimmed_ < kTrimEvery) return;
  trimmed_ = now;
  malloc_trim(0);  // Memory that is free already must not count.
}

}  // namespace tacho::server::edge
