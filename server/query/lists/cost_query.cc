#include "server/query/lists/cost_query.h"

#include "proto/base/saturate.h"
#include "server/errors/grpc_status.h"
#include "server/query/read/selection.h"

namespace tacho::server::query {
namespace {

void BucketsToProto(const cost::JobCost& cost, v1::CostResponse* response) {
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    const cost::JobCost::Bucket& bucket = cost.buckets[i];
    v1::BucketCost* proto = response->add_buckets();
    proto->set_bucket(static_cast<v1::GoodputBucket>(i + 1));
    proto->set_ns(cost.inputs.total.ns[i]);
    if (bucket.chip_seconds) proto->set_chip_seconds(*bucket.chip_seconds);
    if (bucket.chip_cost) proto->set_chip_cost(*bucket.chip_cost);
    if (cost.inputs.energy) proto->set_joules(cost.inputs.energy->total().joules[i]);
    if (bucket.energy_cost) proto->set_energy_cost(*bucket.energy_cost);
  }
}

void AttemptsToProto(const cost::JobCost& cost, v1::CostResponse* response) {
  for (size_t i = 0; i < cost.attempts.size(); ++i) {
    const cost::AttemptUse& use = cost.inputs.attempts[i];
    const cost::JobCost::Attempt& attempt = cost.attempts[i];
    v1::AttemptCost* proto = response->add_attempts();
    proto->set_attempt(use.attempt);
    if (use.chips) proto->set_chips(*use.chips);
    proto->set_kind(use.kind);
    proto->set_capacity_type(use.capacity_type);
    if (attempt.price) {
      proto->set_price_kind(attempt.price->kind);
      proto->set_price_capacity_type(attempt.price->capacity_type);
      proto->set_price_per_chip_hour(attempt.price->per_hour);
    }
    if (attempt.chip_seconds) proto->set_chip_seconds(*attempt.chip_seconds);
    if (attempt.chip_cost) proto->set_chip_cost(*attempt.chip_cost);
  }
}

void EnergyToProto(const cost::JobEnergy& energy, v1::JobEnergy* proto) {
  const cost::Energy total = energy.total();
  proto->set_joules(total.total());
  proto->set_chip_joules(energy.chips.total());
  proto->set_host_joules(energy.hosts.total());
  proto->set_covered_seconds(total.covered_ns / 1e9);
  proto->set_due_seconds(total.due_ns / 1e9);
  proto->set_gaps(total.gaps);
  proto->set_refused(total.refused);
  proto->set_hosts(energy.hosts_counted);
  proto->set_chips(energy.chips_counted);
  proto->set_read_every(SaturatingCast<uint32_t>(static_cast<double>(energy.read_every)));
}

void AccuracyToProto(const cost::Accuracy& accuracy, v1::AccuracyGain* proto) {
  proto->set_metric(accuracy.metric);
  if (accuracy.task) proto->set_task(*accuracy.task);
  proto->set_first(accuracy.first);
  proto->set_best(accuracy.best);
  proto->set_points(accuracy.points());
}

}  // namespace

void ToProto(const cost::JobCost& cost, v1::CostResponse* response) {
  response->set_job(cost.job);
  response->set_currency(cost.currency);
  response->set_begin_unix_ns(cost.inputs.total.begin_ns);
  response->set_end_unix_ns(cost.inputs.total.end_ns);
  BucketsToProto(cost, response);
  AttemptsToProto(cost, response);
  if (cost.chip_seconds) response->set_chip_seconds(*cost.chip_seconds);
  response->set_chip_seconds_not_priced(cost.chip_seconds_not_priced);
  if (cost.chip_cost) response->set_chip_cost(*cost.chip_cost);
  response->set_no_chip_cost(cost.no_chip_cost);
  if (cost.inputs.energy) EnergyToProto(*cost.inputs.energy, response->mutable_energy());
  if (cost.energy_cost) response->set_energy_cost(*cost.energy_cost);
  response->set_no_energy_cost(cost.no_energy_cost);
  if (cost.cost) response->set_cost(*cost.cost);
  response->set_productive_steps(cost.inputs.total.productive_steps);
  if (cost.cost_per_step) response->set_cost_per_step(*cost.cost_per_step);
  if (cost.tokens) response->set_tokens(*cost.tokens);
  if (cost.cost_per_million_tokens) {
    response->set_cost_per_million_tokens(*cost.cost_per_million_tokens);
  }
  if (cost.inputs.accuracy) AccuracyToProto(*cost.inputs.accuracy, response->mutable_accuracy());
  if (cost.cost_per_accuracy_point) {
    response->set_cost_per_accuracy_point(*cost.cost_per_accuracy_point);
  }
}

absl::Status GetCost(const storage::Store& store, const v1::CostRequest& request,
                     const cost::CostSettings& settings, absl::Time now,
                     const QueryControl& control, v1::CostResponse* response,
                     const goodput::AgentReports& reports) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  const auto cost = cost::CostOf(store, request.job(), settings, now, control, reports);
  if (absl::IsNotFound(cost.status())) return NoSuchJob(store, request.job());
  if (!cost.ok()) return cost.status();
  ToProto(*cost, response);
  return absl::OkStatus();
}

}  // namespace tacho::server::query
