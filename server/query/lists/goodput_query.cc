#include "server/query/lists/goodput_query.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/base/saturate.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

// The enum begins with UNSPECIFIED.
static_assert(v1::GoodputBucket_MAX == static_cast<int>(goodput::kGoodputBuckets));

void LedgerToProto(const goodput::Ledger& ledger, v1::Goodput* proto) {
  proto->set_begin_unix_ns(ledger.begin_ns);
  proto->set_end_unix_ns(ledger.end_ns);
  proto->set_wall_ns(ledger.wall_ns());
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    v1::BucketTime* bucket = proto->add_buckets();
    bucket->set_bucket(static_cast<v1::GoodputBucket>(i + 1));
    bucket->set_ns(ledger.ns[i]);
  }
  if (const auto ratio = goodput::GoodputRatio(ledger); ratio.has_value()) {
    proto->set_goodput_ratio(*ratio);
  }
  proto->set_productive_steps(ledger.productive_steps);
  proto->set_wasted_steps(ledger.wasted_steps);
  proto->set_rewinds(ledger.rewinds);
}

void SpanToProto(const goodput::BucketSpan& span, v1::LedgerSpan* proto) {
  proto->set_bucket(static_cast<v1::GoodputBucket>(static_cast<int>(span.bucket) + 1));
  proto->set_begin_unix_ns(span.begin_ns);
  proto->set_end_unix_ns(span.end_ns);
  proto->set_attempt(span.attempt);
  if (!span.steps.has_value()) return;
  proto->set_first_step(span.steps->first);
  proto->set_last_step(span.steps->last);
}

// The enum begins with UNSPECIFIED.
static_assert(v1::LossReason_MAX == static_cast<int>(goodput::kLossReasons));

void LossesToProto(const goodput::JobGoodput& goodput, v1::HostLosses* proto) {
  const auto ns = [](double seconds) { return SaturatingCast<int64_t>(seconds * 1e9); };
  proto->set_lost_ns(ns(goodput.lost_seconds));
  proto->set_judged_steps(goodput.loss_judged_steps);
  for (const auto& losing : goodput.losing_hosts) {
    v1::HostLoss* host = proto->add_hosts();
    host->set_host(losing.host);
    int64_t all = 0;
    for (size_t i = 0; i < goodput::kLossReasons; ++i) {
      if (losing.seconds[i] <= 0) continue;
      v1::ReasonLoss* reason = host->add_reasons();
      reason->set_reason(static_cast<v1::LossReason>(i + 1));
      reason->set_ns(ns(losing.seconds[i]));
      all += reason->ns();
    }
    host->set_lost_ns(all);
  }
}

}  // namespace

void ToProto(const goodput::StepFigures& figures, v1::StepFigures* proto) {
  proto->set_sampled(figures.sampled);
  if (figures.median) proto->set_step_time_median_seconds(*figures.median);
  if (figures.p90) proto->set_step_time_p90_seconds(*figures.p90);
  if (figures.p99) proto->set_step_time_p99_seconds(*figures.p99);
  if (figures.mean) proto->set_step_time_mean_seconds(*figures.mean);
  if (figures.mad) proto->set_step_time_mad_seconds(*figures.mad);
  if (figures.ideal) proto->set_step_time_ideal_seconds(*figures.ideal);
  if (figures.mfu) proto->set_mfu_ratio(*figures.mfu);
  if (figures.peak_flops) proto->set_device_peak_flops(*figures.peak_flops);
  proto->set_device_peak_source(figures.peak_source);
  if (figures.tokens_per_second) proto->set_tokens_per_second(*figures.tokens_per_second);
  if (figures.last_step) proto->set_last_step(*figures.last_step);
  if (figures.planned_steps) proto->set_planned_steps(*figures.planned_steps);
  if (figures.progress) proto->set_progress_ratio(*figures.progress);
  if (figures.remaining_seconds) proto->set_remaining_seconds(*figures.remaining_seconds);
}

void ToProto(const goodput::JobGoodput& goodput, bool totals_only, v1::GoodputResponse* response) {
  response->set_job(goodput.job);
  LedgerToProto(goodput.total, response->mutable_total());
  for (const auto& attempt : goodput.attempts) {
    if (totals_only) break;
    v1::AttemptGoodput* proto = response->add_attempts();
    proto->set_attempt(attempt.attempt);
    LedgerToProto(attempt.ledger, proto->mutable_goodput());
  }
  if (goodput.steps_attempt.has_value()) {
    ToProto(goodput.steps, response->mutable_steps());
    response->set_attempt(*goodput.steps_attempt);
  }
  if (goodput.reference_task.has_value()) response->set_reference_task(*goodput.reference_task);
  response->set_step_metric(goodput.step_metric);
  for (const goodput::BucketSpan& span : goodput.spans) SpanToProto(span, response->add_spans());
  response->set_spans_joined(goodput.spans_joined);
  if (goodput.loss_judged_steps > 0) LossesToProto(goodput, response->mutable_losses());
}

absl::Status GetGoodput(const storage::Store& store, const v1::GoodputRequest& request,
                        const conditions::SignalNames& names, absl::Time now,
                        const QueryControl& control, v1::GoodputResponse* response,
                        const goodput::AgentReports& reports) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  if (request.max_spans() > kMaxLedgerSpans) {
    return errors::InvalidFieldError("max_spans", absl::StrCat("is at most ", kMaxLedgerSpans));
  }
  const auto goodput =
      goodput::GoodputOf(store, request.job(), names, now, control, request.max_spans(), reports);
  if (absl::IsNotFound(goodput.status())) return NoSuchJob(store, request.job());
  if (!goodput.ok()) return goodput.status();
  ToProto(*goodput, request.totals_only(), response);
  return absl::OkStatus();
}

}  // namespace tacho::server::query
