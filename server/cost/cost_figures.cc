#include "server/cost/cost_figures.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server::cost {
namespace {

constexpr size_t kDownIndex = static_cast<size_t>(goodput::GoodputBucket::kDown);
constexpr double kSecondsPerHour = 3600;

void AddTo(double amount, std::optional<double>* sum) { *sum = sum->value_or(0) + amount; }

// Why an attempt's chips have no price.
std::string NoPrice(const AttemptUse& use, const PriceList& prices) {
  if (!use.chips.has_value()) {
    return "nothing says how many chips the job has: record the attribute device_count";
  }
  if (prices.currency().empty()) return "there is no price list: set cost.chips";
  if (use.kind.empty()) {
    return "nothing says of which kind the job's chips are: record the attribute device_kind";
  }
  return absl::StrCat("cost.chips has no price for ", use.kind,
                      use.capacity_type.empty() ? "" : absl::StrCat(" (", use.capacity_type, ")"));
}

void AddAttempt(const AttemptUse& use, const PriceList& prices, JobCost* cost) {
  JobCost::Attempt& attempt = cost->attempts.emplace_back();
  if (use.chips.has_value() && !use.kind.empty()) {
    const ChipPrice* price = prices.Find(use.kind, use.capacity_type);
    if (price != nullptr) attempt.price = *price;
  }
  if (!attempt.price.has_value() && cost->no_chip_cost.empty()) {
    cost->no_chip_cost = NoPrice(use, prices);
  }
  if (!use.chips.has_value()) return;
  // Chips that were bought as spot were given back; what the price says of them counts if nobody
  // else says how they were bought.
  const bool spot =
      use.capacity_type == "spot" || (use.capacity_type.empty() && attempt.price.has_value() &&
                                      attempt.price->capacity_type == "spot");
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    if (spot && i == kDownIndex) continue;
    const double chip_seconds = static_cast<double>(use.ns[i]) / 1e9 * *use.chips;
    AddTo(chip_seconds, &cost->buckets[i].chip_seconds);
    AddTo(chip_seconds, &attempt.chip_seconds);
    if (!attempt.price.has_value()) {
      cost->chip_seconds_not_priced += chip_seconds;
      continue;
    }
    const double money = chip_seconds * attempt.price->per_hour / kSecondsPerHour;
    AddTo(money, &cost->buckets[i].chip_cost);
    AddTo(money, &attempt.chip_cost);
  }
}

void AddEnergy(const PriceList& prices, JobCost* cost) {
  if (!cost->inputs.energy.has_value()) {
    cost->no_energy_cost = cost->inputs.no_energy;
    return;
  }
  if (!prices.per_joule().has_value()) {
    cost->no_energy_cost = "energy has no price: set cost.energy.per_kwh";
    return;
  }
  const Energy energy = cost->inputs.energy->total();
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    cost->buckets[i].energy_cost = energy.joules[i] * *prices.per_joule();
    AddTo(*cost->buckets[i].energy_cost, &cost->energy_cost);
  }
}

}  // namespace

std::vector<goodput::BucketAmounts> WithTimeAfter(const std::vector<goodput::Ledger>& ledgers,
                                                  const goodput::Ledger& total) {
  std::vector<goodput::BucketAmounts> amounts;
  goodput::BucketAmounts rest = total.ns;
  for (size_t i = 0; i < ledgers.size(); ++i) {
    amounts.push_back(ledgers[i].ns);
    if (i + 1 < ledgers.size()) {
      amounts[i][kDownIndex] += ledgers[i + 1].begin_ns - ledgers[i].end_ns;
    }
    for (size_t bucket = 0; bucket < rest.size(); ++bucket) rest[bucket] -= amounts[i][bucket];
  }
  if (amounts.empty()) return amounts;
  for (size_t bucket = 0; bucket < rest.size(); ++bucket) amounts.back()[bucket] += rest[bucket];
  return amounts;
}

JobCost FiguresOf(CostInputs inputs, const PriceList& prices) {
  JobCost cost;
  cost.currency = prices.currency();
  cost.inputs = std::move(inputs);
  for (const AttemptUse& use : cost.inputs.attempts) AddAttempt(use, prices, &cost);
  for (const JobCost::Attempt& attempt : cost.attempts) {
    if (attempt.chip_seconds.has_value()) AddTo(*attempt.chip_seconds, &cost.chip_seconds);
    if (attempt.chip_cost.has_value()) AddTo(*attempt.chip_cost, &cost.chip_cost);
  }
  AddEnergy(prices, &cost);
  if (cost.chip_cost.has_value()) cost.cost = cost.chip_cost;
  if (cost.energy_cost.has_value()) AddTo(*cost.energy_cost, &cost.cost);
  const auto steps = static_cast<double>(cost.inputs.total.productive_steps);
  if (cost.inputs.tokens_per_step.has_value() && steps > 0) {
    cost.tokens = *cost.inputs.tokens_per_step * steps;
  }
  if (!cost.cost.has_value()) return cost;
  if (steps > 0) cost.cost_per_step = *cost.cost / steps;
  if (cost.tokens.value_or(0) > 0) cost.cost_per_million_tokens = *cost.cost / *cost.tokens * 1e6;
  if (cost.inputs.accuracy.has_value() && cost.inputs.accuracy->points() > 0) {
    cost.cost_per_accuracy_point = *cost.cost / cost.inputs.accuracy->points();
  }
  return cost;
}

}  // namespace tacho::server::cost
