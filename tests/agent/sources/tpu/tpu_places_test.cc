#include "agent/sources/tpu/tpu_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::map<std::string, uint32_t> kDevices = {
    {"/dev/vfio/0", 0}, {"/dev/vfio/1", 1}, {"/dev/vfio/2", 2}, {"/dev/vfio/3", 3}};
const std::set<uint32_t> kChips = {0, 1, 2, 3};

ChipHolder Holder(int pid, std::set<std::string> devices, Environment environment) {
  return {pid, std::move(devices), std::move(environment)};
}

TEST(TpuPortsTest, TakesWhatIsAPort) {
  EXPECT_THAT(ParseTpuPorts("8431,8432 , x,,0,70000,-1,8433"), ElementsAre(8431, 8432, 8433));
  EXPECT_THAT(ParseTpuPorts(""), IsEmpty());
  std::string many;
  for (size_t i = 0; i <= kMaxTpuPorts; ++i) many += "8431,";
  EXPECT_THAT(ParseTpuPorts(many), SizeIs(kMaxTpuPorts));
}

TEST(TpuGroupsTest, WithoutHoldersTheDefaultsOfTheVendor) {
  const auto groups = GroupsOf({}, {}, kDevices, kChips);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].addresses,
              ElementsAre("localhost:8431", "localhost:8432", "localhost:8433", "localhost:8434"));
  EXPECT_EQ(groups[0].chips, kChips);
  EXPECT_THAT(groups[0].pids, IsEmpty());
}

TEST(TpuGroupsTest, TheHoldersEnvironmentWinsOverTheAgents) {
  ChipHolders holders;
  holders.holders.push_back(
      Holder(7, {"/dev/vfio/0"}, {{"TPU_RUNTIME_METRICS_PORTS", "9000,9001"}}));
  const auto groups = GroupsOf({.addresses = {}, .ports = "8500"}, holders, kDevices, kChips);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].addresses, ElementsAre("localhost:9000", "localhost:9001"));
  EXPECT_THAT(groups[0].chips, ElementsAre(0));
}

TEST(TpuGroupsTest, EnvironmentThatCannotBeReadLeavesTheAgents) {
  ChipHolders holders;
  holders.holders.push_back({7, {"/dev/vfio/0"}, std::nullopt});
  const auto groups = GroupsOf({.addresses = {}, .ports = "8500"}, holders, kDevices, kChips);
  EXPECT_THAT(groups[0].addresses, ElementsAre("localhost:8500"));
}

TEST(TpuGroupsTest, EmptyVariableSwitchesTheMetricsOff) {
  ChipHolders holders;
  holders.holders.push_back(Holder(7, {"/dev/vfio/0"}, {{"TPU_RUNTIME_METRICS_PORTS", ""}}));
  const auto groups = GroupsOf({}, holders, kDevices, kChips);
  ASSERT_THAT(groups, SizeIs(1));
  EXPECT_THAT(groups[0].addresses, IsEmpty());
  EXPECT_THAT(groups[0].pids, ElementsAre(7));
}

TEST(TpuGroupsTest, ConfiguredAddressesWinOverAll) {
  ChipHolders holders;
  holders.holders.push_back(Holder(7, {"/dev/vfio/0"}, {{"TPU_RUNTIME_METRICS_PORTS", "9000"}}));
  const auto groups =
      GroupsOf({.addresses = {"10.0.0.2:8431"}, .ports = "8500"}, holders, kDevices, kChips);
  EXPECT_THAT(groups[0].addresses, ElementsAre("10.0.0.2:8431"));
}

TEST(TpuGroupsTest, TwoJobsOnOneMachineAreTwoGroups) {
  ChipHolders holders;
  holders.holders.push_back(
      Holder(7, {"/dev/vfio/0", "/dev/vfio/1"}, {{"TPU_RUNTIME_METRICS_PORTS", "8431"}}));
  holders.holders.push_back(
      Holder(8, {"/dev/vfio/2", "/dev/vfio/3"}, {{"TPU_RUNTIME_METRICS_PORTS", "8441"}}));
  const auto groups = GroupsOf({}, holders, kDevices, kChips);
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_THAT(groups[0].chips, ElementsAre(0, 1));
  EXPECT_THAT(groups[1].chips, ElementsAre(2, 3));
}

TEST(TpuDevicesTest, GlobalNumbersArePlacedByTheirOrder) {
  TpuDevices devices;
  const auto places = devices.Place({8, 9, 12, 13}, kChips, 1);
  EXPECT_EQ(places.at(8).chip, "0");
  EXPECT_EQ(places.at(12).chip, "2");
  EXPECT_EQ(places.at(12).core, "");
}

TEST(TpuDevicesTest, TwoDevicesAChipAreCores) {
  TpuDevices devices;
  const auto places = devices.Place({0, 1, 2, 3}, {0, 1}, 2);
  EXPECT_EQ(places.at(3).chip, "1");
  EXPECT_EQ(places.at(3).core, "1");
  const auto one_a_chip = devices.Place({0, 1}, {0, 1}, 2);
  EXPECT_EQ(one_a_chip.at(1).chip, "1") << "the duty cycle of v2 and v3 is of a chip";
  EXPECT_EQ(one_a_chip.at(1).core, "");
}

TEST(TpuDevicesTest, SomeOfThemAreNotGuessedUnlessAllWereThereBefore) {
  TpuDevices devices;
  EXPECT_EQ(devices.Place({12}, kChips, 1).at(12).chip, "device 12");
  EXPECT_FALSE(devices.Place({12}, kChips, 1).at(12).known);
  devices.Place({8, 9, 12, 13}, kChips, 1);
  EXPECT_EQ(devices.Place({12}, kChips, 1).at(12).chip, "2");
  EXPECT_EQ(devices.Place({12}, {0, 1}, 1).at(12).chip, "device 12") << "other chips now";
}

}  // namespace
}  // namespace tacho::agent
