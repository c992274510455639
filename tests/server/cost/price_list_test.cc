#include "server/cost/price_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "proto/config/yaml_config.h"
#include "tacho/config/v1/collector.pb.h"

namespace tacho::server::cost {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

config::v1::Cost Parse(const std::string& yaml) {
  config::v1::Collector config;
  const absl::Status parsed = config::ParseYaml(yaml, "c.yaml", &config);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return config.cost();
}

PriceList Prices(const std::string& yaml) {
  auto list = PriceList::Create(Parse(yaml));
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *std::move(list) : PriceList();
}

std::string Refusal(const std::string& yaml) {
  return std::string(PriceList::Create(Parse(yaml)).status().message());
}

// The price of an hour; 0: none.
double HourOf(const PriceList& list, const char* kind, const char* type = "") {
  const ChipPrice* price = list.Find(kind, type);
  return price == nullptr ? 0 : price->per_hour;
}

constexpr char kTypical[] =
    "cost:\n"
    "  currency: EUR\n"
    "  chips:\n"
    "    - {kind: H100, capacity_type: reserved, per_hour: 2}\n"
    "    - {kind: H100, capacity_type: spot, per_hour: 1.25}\n"
    "    - {kind: H100 PCIe, per_hour: 1.5}\n"
    "    - {kind: TPU v5, per_hour: 4}\n"
    "    - {kind: TPU v5 lite, per_hour: 1}\n"
    "  energy: {per_kwh: 0.36, overhead_factor: 1.5}\n";

TEST(PriceListTest, WithoutAPriceListNothingHasAPrice) {
  const PriceList list = Prices("{}");
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.currency(), "");
  EXPECT_EQ(HourOf(list, "NVIDIA H100 80GB HBM3"), 0);
  EXPECT_FALSE(list.per_joule().has_value());
}

TEST(PriceListTest, AnEmptyMessageHasTheDefaults) {
  config::v1::Cost config;
  ASSERT_TRUE(PriceList::Create(config).ok());
  config.mutable_energy()->set_per_kwh(0.36);
  const auto list = PriceList::Create(config);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->currency(), "USD");
  EXPECT_DOUBLE_EQ(list->per_joule().value_or(0), 1e-7);
}

TEST(PriceListTest, AJouleCostsItsShareOfAKilowattHourWithTheOverhead) {
  const PriceList list = Prices(kTypical);
  EXPECT_EQ(list.currency(), "EUR");
  EXPECT_DOUBLE_EQ(list.per_joule().value_or(0), 1.5e-7);  // 0.36 x 1.5 / 3,600,000
}

TEST(PriceListTest, ThePriceFollowsHowTheChipsWereBought) {
  const PriceList list = Prices(kTypical);
  EXPECT_EQ(HourOf(list, "NVIDIA H100 80GB HBM3", "reserved"), 2);
  EXPECT_EQ(HourOf(list, "NVIDIA H100 80GB HBM3", "spot"), 1.25);
  EXPECT_EQ(HourOf(list, "NVIDIA H100 80GB HBM3", "on_demand"), 0) << "nobody said what it costs";
  EXPECT_EQ(HourOf(list, "NVIDIA H100 80GB HBM3", ""), 2) << "the first of the list";
}

TEST(PriceListTest, TheLongestKindThatFitsCountsAndATpuIsItsWholeName) {
  const PriceList list = Prices(kTypical);
  EXPECT_EQ(HourOf(list, "nvidia h100 pcie", "spot"), 1.5);
  EXPECT_EQ(HourOf(list, "TPU v5"), 4);
  EXPECT_EQ(HourOf(list, "TPU v5 lite"), 1);
  EXPECT_EQ(HourOf(list, "TPU v5p"), 0) << "another chip";
  EXPECT_EQ(HourOf(list, "NVIDIA A100"), 0);
}

TEST(PriceListTest, WhatIsWrongIsRefusedWithItsKeyAReasonAndARemedy) {
  EXPECT_THAT(Refusal("cost: {currency: euro}"),
              AllOf(HasSubstr("cost.currency: is \"euro\""), HasSubstr("three capital letters")));
  EXPECT_THAT(Refusal("cost: {chips: [{kind: H100}]}"),
              AllOf(HasSubstr("cost.chips[0].per_hour: is 0 for H100"), HasSubstr("write what")));
  EXPECT_THAT(Refusal("cost: {chips: [{kind: A, per_hour: 1}, {kind: a, per_hour: 2}]}"),
              AllOf(HasSubstr("cost.chips[1].kind: names a"), HasSubstr("keep one")));
}

TEST(PriceListTest, NumbersThatAreNoPricesAreRefused) {
  config::v1::Cost config = Parse(kTypical);
  config.mutable_chips(1)->set_per_hour(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(std::string(PriceList::Create(config).status().message()),
              HasSubstr("cost.chips[1].per_hour"));
  config = Parse(kTypical);
  config.mutable_energy()->set_per_kwh(-1);
  EXPECT_THAT(std::string(PriceList::Create(config).status().message()),
              HasSubstr("cost.energy.per_kwh"));
  config = Parse(kTypical);
  config.mutable_energy()->set_overhead_factor(0.5);
  EXPECT_THAT(std::string(PriceList::Create(config).status().message()),
              AllOf(HasSubstr("cost.energy.overhead_factor"), HasSubstr("PUE")));
}

TEST(PriceListTest, TypesOfCapacityHaveTheWordsOfOthers) {
  EXPECT_EQ(CapacityTypeOf("Spot"), "spot");
  EXPECT_EQ(CapacityTypeOf("PREEMPTIBLE"), "spot");
  EXPECT_EQ(CapacityTypeOf("on-demand"), "on_demand");
  EXPECT_EQ(CapacityTypeOf("STANDARD"), "on_demand");
  EXPECT_EQ(CapacityTypeOf("reservation"), "reserved");
  EXPECT_EQ(CapacityTypeOf("flex"), "");
}

TEST(PriceListTest, SomeTpusHaveTwoDevicesAChip) {
  EXPECT_EQ(ChipsOf("TPU v3", 8), 4);
  EXPECT_EQ(ChipsOf("TPU v5p", 8), 8);
  EXPECT_EQ(ChipsOf("NVIDIA H100", 8), 8);
}

}  // namespace
}  // namespace tacho::server::cost
