#include "server/cost/cost_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace tacho::server::cost {
namespace {

using goodput::GoodputBucket;
using goodput::Ledger;
using ::testing::HasSubstr;

constexpr int64_t kHour = 3'600'000'000'000;

PriceList Prices(double h100, double per_kwh = 0, const char* type = "any") {
  config::v1::Cost config;
  config.set_currency("USD");
  if (h100 > 0) {
    auto* chip = config.add_chips();
    chip->set_kind("H100");
    chip->set_capacity_type(type);
    chip->set_per_hour(h100);
  }
  config.mutable_energy()->set_per_kwh(per_kwh);
  config.mutable_energy()->set_overhead_factor(1);
  auto list = PriceList::Create(config);
  EXPECT_TRUE(list.ok()) << list.status();
  return *std::move(list);
}

Ledger Made(int64_t begin_h, std::vector<std::pair<GoodputBucket, int64_t>> hours) {
  Ledger ledger;
  ledger.begin_ns = ledger.end_ns = begin_h * kHour;
  for (const auto& [bucket, amount] : hours) {
    ledger[bucket] += amount * kHour;
    ledger.end_ns += amount * kHour;
  }
  return ledger;
}

// One attempt on eight H100: an hour initializing, ten of steps, one wasted.
CostInputs OneAttempt(const std::string& type = "") {
  CostInputs inputs;
  inputs.total = Made(0, {{GoodputBucket::kInitializing, 1},
                          {GoodputBucket::kProductiveStep, 10},
                          {GoodputBucket::kWasted, 1}});
  inputs.total.productive_steps = 1000;
  inputs.attempts = {{.attempt = 0,
                      .ns = inputs.total.ns,
                      .chips = 8,
                      .kind = "NVIDIA H100",
                      .capacity_type = type}};
  return inputs;
}

JobEnergy Energies(double step_joules, double init_joules) {
  JobEnergy energy;
  energy.chips.joules[static_cast<size_t>(GoodputBucket::kProductiveStep)] = step_joules;
  energy.chips.joules[static_cast<size_t>(GoodputBucket::kInitializing)] = init_joules;
  energy.chips.covered_ns = energy.chips.due_ns = 1e9;
  return energy;
}

double ChipCostOf(const JobCost& cost, GoodputBucket bucket) {
  return cost.buckets[static_cast<size_t>(bucket)].chip_cost.value_or(-1);
}

TEST(CostFiguresTest, EachBucketCostsItsTimeOnAllChips) {
  const JobCost cost = FiguresOf(OneAttempt(), Prices(2.5));
  EXPECT_DOUBLE_EQ(ChipCostOf(cost, GoodputBucket::kInitializing), 20);     // 1 x 8 x 2.5
  EXPECT_DOUBLE_EQ(ChipCostOf(cost, GoodputBucket::kProductiveStep), 200);  // 10 x 8 x 2.5
  EXPECT_DOUBLE_EQ(ChipCostOf(cost, GoodputBucket::kWasted), 20);
  EXPECT_DOUBLE_EQ(cost.chip_cost.value_or(-1), 240);
  EXPECT_DOUBLE_EQ(cost.chip_seconds.value_or(-1), 96 * 3600);
  EXPECT_DOUBLE_EQ(cost.cost.value_or(-1), 240);
  EXPECT_DOUBLE_EQ(cost.cost_per_step.value_or(-1), 0.24);
  EXPECT_EQ(cost.currency, "USD");
  EXPECT_FALSE(cost.energy_cost.has_value());
}

TEST(CostFiguresTest, EnergyCostsByTheKilowattHour) {
  CostInputs inputs = OneAttempt();
  inputs.energy = Energies(36e6, 3.6e6);  // 10 kWh and 1 kWh.
  const JobCost cost = FiguresOf(inputs, Prices(2.5, 0.2));
  EXPECT_DOUBLE_EQ(cost.energy_cost.value_or(-1), 2.2);
  EXPECT_DOUBLE_EQ(cost.buckets[0].energy_cost.value_or(-1), 2);
  EXPECT_DOUBLE_EQ(cost.cost.value_or(-1), 242.2);
}

TEST(CostFiguresTest, WithoutPricesEnergyAndChipHoursAreThereAndMoneyIsNot) {
  CostInputs inputs = OneAttempt();
  inputs.energy = Energies(36e6, 0);
  const JobCost cost = FiguresOf(inputs, PriceList());
  EXPECT_DOUBLE_EQ(cost.chip_seconds.value_or(-1), 96 * 3600);
  EXPECT_DOUBLE_EQ(cost.inputs.energy->total().total(), 36e6);
  EXPECT_FALSE(cost.cost.has_value());
  EXPECT_FALSE(cost.cost_per_step.has_value());
  EXPECT_EQ(cost.currency, "");
  EXPECT_THAT(cost.no_chip_cost, HasSubstr("cost.chips"));
  EXPECT_THAT(cost.no_energy_cost, HasSubstr("cost.energy.per_kwh"));
}

TEST(CostFiguresTest, TokensAndAccuracyAreThoseOfTheProductiveSteps) {
  CostInputs inputs = OneAttempt();
  inputs.tokens_per_step = 4e6;
  inputs.accuracy = Accuracy{.metric = "eval_accuracy", .task = 0, .first = 0.1, .best = 0.7};
  const JobCost cost = FiguresOf(inputs, Prices(2.5));
  EXPECT_DOUBLE_EQ(cost.tokens.value_or(-1), 4e9);
  EXPECT_DOUBLE_EQ(cost.cost_per_million_tokens.value_or(-1), 0.06);  // 240 / 4,000
  EXPECT_NEAR(cost.cost_per_accuracy_point.value_or(-1), 4, 1e-9);    // 240 / 60
  inputs.accuracy->best = 0.1;
  EXPECT_FALSE(FiguresOf(inputs, Prices(2.5)).cost_per_accuracy_point.has_value());
}

// Two attempts of two hours, an hour down between them and one after them.
CostInputs TwoAttempts(const std::string& type) {
  const std::vector<Ledger> ledgers = {Made(0, {{GoodputBucket::kProductiveStep, 2}}),
                                       Made(3, {{GoodputBucket::kProductiveStep, 2}})};
  CostInputs inputs;
  inputs.total = Made(0, {{GoodputBucket::kProductiveStep, 4}, {GoodputBucket::kDown, 2}});
  const auto amounts = WithTimeAfter(ledgers, inputs.total);
  for (uint32_t i = 0; i < 2; ++i) {
    inputs.attempts.push_back(
        {.attempt = i, .ns = amounts[i], .chips = 4, .kind = "H100", .capacity_type = type});
  }
  return inputs;
}

TEST(CostFiguresTest, TimeDownIsTheEarlierAttemptsAndAllAddsUpToTheLedger) {
  const CostInputs inputs = TwoAttempts("reserved");
  for (size_t i = 0; i < goodput::kGoodputBuckets; ++i) {
    EXPECT_EQ(inputs.attempts[0].ns[i] + inputs.attempts[1].ns[i], inputs.total.ns[i]);
  }
  EXPECT_EQ(inputs.attempts[0].ns[static_cast<size_t>(GoodputBucket::kDown)], kHour);
  const JobCost cost = FiguresOf(inputs, Prices(1));
  EXPECT_DOUBLE_EQ(ChipCostOf(cost, GoodputBucket::kDown), 8);
  EXPECT_DOUBLE_EQ(cost.chip_cost.value_or(-1), 24);
}

TEST(CostFiguresTest, SpotChipsCostNothingWhileTheJobIsDown) {
  for (const char* type : {"spot", ""}) {
    const JobCost cost = FiguresOf(TwoAttempts(type), Prices(1, 0, "spot"));
    EXPECT_EQ(ChipCostOf(cost, GoodputBucket::kDown), -1) << type;
    EXPECT_DOUBLE_EQ(cost.chip_cost.value_or(-1), 16) << type;
    EXPECT_DOUBLE_EQ(cost.chip_seconds.value_or(-1), 16 * 3600) << type;
  }
}

TEST(CostFiguresTest, WhatHasNoPriceIsToldAndNotGuessed) {
  CostInputs inputs = TwoAttempts("reserved");
  inputs.attempts[1].kind = "NVIDIA A100";
  const JobCost cost = FiguresOf(inputs, Prices(1));
  EXPECT_DOUBLE_EQ(cost.chip_cost.value_or(-1), 12);
  EXPECT_DOUBLE_EQ(cost.chip_seconds_not_priced, 12 * 3600);
  EXPECT_THAT(cost.no_chip_cost, HasSubstr("NVIDIA A100 (reserved)"));
  inputs.attempts[0].chips.reset();
  EXPECT_THAT(FiguresOf(inputs, Prices(1)).no_chip_cost, HasSubstr("device_count"));
}

TEST(CostFiguresTest, CostsOfBucketsAddUpToTheJobs) {
  CostInputs inputs = OneAttempt("spot");
  inputs.energy = Energies(12e6, 7e6);
  const JobCost cost = FiguresOf(inputs, Prices(3.3, 0.17));
  double sum = 0;
  for (const auto& bucket : cost.buckets) {
    sum += bucket.chip_cost.value_or(0) + bucket.energy_cost.value_or(0);
  }
  EXPECT_NEAR(sum, cost.cost.value_or(-1), 1e-9);
}

}  // namespace
}  // namespace tacho::server::cost
