#include "agent/sources/tpu/tpu_chips.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/agent/sources/tpu/tpu_test_machine.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TpuChipsTest, GooglesOtherFunctionsAreNoTpus) {
  testing::TpuTestMachine machine;
  machine.AddFunction("0000:00:04.0", "0x1ae0", "0x0042");  // gVNIC
  machine.AddFunction("0000:00:06.0", "0x1ae0", "0x001f");  // NVMe
  machine.AddFunction("0000:00:07.0", "0x10de", "0x0062");  // Another vendor's.
  EXPECT_THAT(FindTpuChips(machine.sys(), machine.dev()), IsEmpty());
  EXPECT_THAT(FindTpuChips("/nowhere", "/dev"), IsEmpty());
}

TEST(TpuChipsTest, ChipsComeInTheOrderOfTheirDeviceFiles) {
  testing::TpuTestMachine machine;
  machine.AddV5p("0000:00:05.0", 10);
  machine.AddV5p("0000:00:06.0", 2);
  const std::vector<TpuChip> chips = FindTpuChips(machine.sys(), machine.dev());
  ASSERT_THAT(chips, SizeIs(2));
  EXPECT_EQ(chips[0].pci, "0000:00:06");
  EXPECT_THAT(chips[0].devices, ElementsAre(machine.dev() + "/vfio/2"));
  EXPECT_EQ(chips[1].pci, "0000:00:05") << "10 after 2";
  EXPECT_STREQ(chips[0].generation->name, "v5p");
  EXPECT_EQ(chips[0].generation->flops_per_second, 459e12);
}

TEST(TpuChipsTest, FunctionsOfOneAddressAreOneChip) {
  testing::TpuTestMachine machine;
  for (const char* function : {"0000:00:05.0", "0000:00:05.1"}) {
    machine.AddFunction(function, "0x1ae0", "0x0076");
  }
  machine.SetVfio("0000:00:05.0", 0);
  machine.SetVfio("0000:00:05.1", 1);
  const std::vector<TpuChip> chips = FindTpuChips(machine.sys(), machine.dev());
  ASSERT_THAT(chips, SizeIs(1));
  EXPECT_THAT(chips[0].devices, SizeIs(2));
  EXPECT_EQ(chips[0].generation->devices_per_chip, 2);
}

TEST(TpuChipsTest, TheSubsystemTellsV2FromV3) {
  testing::TpuTestMachine machine;
  machine.AddFunction("0000:00:04.0", "0x1ae0", "0x0027", "0x004e");
  machine.SetAccel("0000:00:04.0", 0);
  machine.AddFunction("0000:00:05.0", "0x1ae0", "0x0027", "0x004f");
  machine.SetAccel("0000:00:05.0", 1);
  machine.AddFunction("0000:00:06.0", "0x1ae0", "0x0027");
  const std::vector<TpuChip> chips = FindTpuChips(machine.sys(), machine.dev());
  ASSERT_THAT(chips, SizeIs(3));
  EXPECT_STREQ(chips[0].generation->name, "v2");
  EXPECT_THAT(chips[0].devices, ElementsAre(machine.dev() + "/accel0"));
  EXPECT_STREQ(chips[1].generation->name, "v3");
  EXPECT_STREQ(chips[2].generation->name, "v3") << "as JAX has it";
  EXPECT_THAT(chips[2].devices, IsEmpty());
}

}  // namespace
}  // namespace tacho::agent
