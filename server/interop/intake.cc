// The intake itself: its settings, its limits on senders, and how it answers. What it does with a
// request is in intake_places.cc and intake_request.cc, with events in intake_events.cc.
#include "server/interop/intake.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/intake_request.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

// What is written while the bucket stands still would come again, and wait too, once the sender has
// lost patience: after this time it is refused at once.
constexpr absl::Duration kBucketPatience = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<Intake>> Intake::Create(const config::v1::Interop& config,
                                                       IntakeOptions options) {
  TACHO_ASSIGN_OR_RETURN(auto mapping, LabelMapping::Create(config));
  return std::unique_ptr<Intake>(
      new Intake(std::move(options), std::move(mapping), config.max_series()));
}

Intake::Intake(IntakeOptions options, std::shared_ptr<const LabelMapping> mapping,
               uint64_t max_series)
    : options_(std::move(options)),
      sheets_(max_series),
      report_({.admission = options_.admission,
               .metrics = options_.metrics,
               .limiting = options_.limiting,
               .log = &options_.log,
               .now = options_.now}),
      remembered_(metrics::NewGauge(options_.registry, "tacho_interop_series")),
      mapping_(std::move(mapping)) {
  TACHO_CHECK(options_.store != nullptr && options_.quotas != nullptr);
}

std::shared_ptr<const LabelMapping> Intake::mapping() const {
  absl::MutexLock lock(&mutex_);
  return mapping_;
}

absl::Status Intake::CheckRates(edge::TokenBucket* sender, edge::TokenBucket* job) const {
  const auto wait = options_.quotas->Charge(0, sender, job);
  if (wait.length <= absl::ZeroDuration()) return absl::OkStatus();
  const bool whole_job = wait.limit == edge::Quotas::Limit::kJobRate;
  return errors::ErrorOf(
      errors::Failure::kOverloaded,
      absl::StrCat(whole_job ? "the job receives" : "the sender sends", " more than quotas.",
                   whole_job ? "job" : "agent", "_samples_per_second"));
}

absl::Status Intake::CheckClock() const {
  if (options_.clock_watch == nullptr) return absl::OkStatus();
  const std::string doubt = options_.clock_watch->DoubtNow();
  return doubt.empty() ? absl::OkStatus() : errors::ErrorOf(errors::Failure::kClockDoubted, doubt);
}

absl::Status Intake::CheckOpen() const {
  TACHO_RETURN_IF_ERROR(options_.admission->CheckDraining());
  TACHO_RETURN_IF_ERROR(options_.quotas->CheckNewStream());
  if (options_.quotas->waits_for_bucket() &&
      options_.store->Shared().unshipped_for > kBucketPatience) {
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           "the bucket does not answer, and acknowledgements wait for it "
                           "(cluster.ack: shared)");
  }
  return absl::OkStatus();
}

std::optional<uint32_t> Intake::PassesTo(const storage::Labels& labels,
                                         const Sender& sender) const {
  const cluster::Membership* const membership = options_.admission->membership();
  if (membership == nullptr || !CanPass(sender)) return std::nullopt;
  const auto mapped = mapping()->Map(labels);
  if (!mapped.ok() || mapped->dropped) return std::nullopt;
  const storage::Source& source = mapped->source;
  if (membership->Keeps(source.job, source.host)) return std::nullopt;
  return membership->ShardOf(source.job, source.host);
}

void Intake::Write(const ForeignWrite& write, const Sender& sender, Done done) {
  told_.Learn(write.metrics);
  Request request(this, write, sender);
  if (auto status = request.Prepare(); !status.ok()) {
    return done({.status = std::move(status)});
  }
  remembered_.Set(static_cast<double>(sheets_.size()));
  request.Send(std::move(done));
}

absl::StatusOr<std::function<void()>> Intake::Prepare(const config::v1::Collector& config) {
  TACHO_ASSIGN_OR_RETURN(auto mapping, LabelMapping::Create(config.interop()));
  return [this, mapping, max_series = config.interop().max_series()] {
    {
      absl::MutexLock lock(&mutex_);
      mapping_ = mapping;
    }
    sheets_.SetMaxSeries(max_series);
    sheets_.ForgetAll();
  };
}

}  // namespace tacho::server::interop
