// What a job used and what that costs, from its ledger, its chips and its energy. Pure.
// docs/cost.md defines each figure for users.
//
//   chip cost of a bucket  = seconds in it x chips x price of a chip hour / 3600, attempt by
//   attempt energy cost of it      = joules in it x price of a joule
//
// The time down after an attempt is at its price, unless its chips were spot: they were given back.
// Costs of buckets add up to that of the job.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/cost/energy.h"
#include "server/cost/job_power.h"
#include "server/cost/price_list.h"
#include "server/goodput/ledger.h"

namespace tacho::server::cost {

// An attempt and what it ran on.
struct AttemptUse {
  uint32_t attempt = 0;
  goodput::BucketAmounts ns = {};  // With the time down after it.
  std::optional<double> chips;
  std::string kind;           // Empty: not known.
  std::string capacity_type;  // As CapacityTypeOf() has it.
};

// The time of the attempts, with what lies between and after them: it is the earlier one's. So they
// add up to `total`. `ledgers` are those of the attempts, ascending.
std::vector<goodput::BucketAmounts> WithTimeAfter(const std::vector<goodput::Ledger>& ledgers,
                                                  const goodput::Ledger& total);

struct Accuracy {
  std::string metric;
  std::optional<uint32_t> task;
  double first = 0;  // 0..1
  double best = 0;
  double points() const { return 100 * (best - first); }
};

struct CostInputs {
  goodput::Ledger total;
  std::vector<AttemptUse> attempts;
  std::optional<JobEnergy> energy;
  std::string no_energy;  // Why it is not known.
  std::optional<double> tokens_per_step;
  std::optional<Accuracy> accuracy;
};

// Money is in the list's currency. nullopt where an input is not known.
struct JobCost {
  std::string job;
  std::string currency;
  CostInputs inputs;

  struct Attempt {
    std::optional<ChipPrice> price;  // Of the list.
    std::optional<double> chip_seconds;
    std::optional<double> chip_cost;
  };
  std::vector<Attempt> attempts;  // As those of `inputs`.
  struct Bucket {
    std::optional<double> chip_seconds, chip_cost, energy_cost;
  };
  std::array<Bucket, goodput::kGoodputBuckets> buckets;

  std::optional<double> chip_seconds;
  double chip_seconds_not_priced = 0;
  std::optional<double> chip_cost;
  std::string no_chip_cost;
  std::optional<double> energy_cost;
  std::string no_energy_cost;
  std::optional<double> cost;
  std::optional<double> cost_per_step;
  std::optional<double> tokens;
  std::optional<double> cost_per_million_tokens;
  std::optional<double> cost_per_accuracy_point;
};

JobCost FiguresOf(CostInputs inputs, const PriceList& prices);

}  // namespace tacho::server::cost
