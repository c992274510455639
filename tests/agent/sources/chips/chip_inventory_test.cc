#include "agent/sources/chips/chip_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

ChipHere Gpu(uint32_t wanted, const std::string& place) { return {place, wanted}; }

TEST(ChipInventoryTest, LabelsStayWhenAGpuFallsOffTheBus) {
  ChipInventory inventory("");
  EXPECT_THAT(inventory.Place({{Gpu(0, "a"), Gpu(1, "b"), Gpu(2, "c")}}, 0), ElementsAre(0, 1, 2));
  // NVML's indices shift.
  EXPECT_THAT(inventory.Place({{Gpu(0, "a"), Gpu(1, "c")}}, 0), ElementsAre(0, 2));
  EXPECT_EQ(inventory.expected(), 3);
  EXPECT_THAT(inventory.slots(), SizeIs(3));
}

TEST(ChipInventoryTest, RemembersOverRestarts) {
  ChipInventory before("");
  before.Place({{Gpu(0, "a"), Gpu(1, "b")}}, 0);
  ChipInventory after(before.Encode());
  EXPECT_EQ(after.expected(), 2);
  EXPECT_THAT(after.Place({{Gpu(0, "b")}}, 0), ElementsAre(1));
  EXPECT_EQ(after.expected(), 2);
}

TEST(ChipInventoryTest, DeviceFilesNumberNewGpusIfTheyAreFree) {
  ChipInventory inventory("");
  EXPECT_THAT(inventory.Place({{Gpu(5, "a"), Gpu(5, "b")}}, 0), ElementsAre(5, 0));
}

TEST(ChipInventoryTest, OtherPlacesThanBeforeDoNotMakeMoreExpected) {
  ChipInventory inventory("");
  inventory.Place({{Gpu(0, "a"), Gpu(1, "b")}}, 0);
  // The same disk in another machine.
  EXPECT_THAT(inventory.Place({{Gpu(0, "x"), Gpu(1, "y")}}, 0), ElementsAre(0, 1));
  EXPECT_EQ(inventory.expected(), 2);
  EXPECT_THAT(inventory.slots(), SizeIs(2));
}

TEST(ChipInventoryTest, ConfiguredNumberForgetsWhatWasTakenOut) {
  ChipInventory inventory("");
  inventory.Place({{Gpu(0, "a"), Gpu(1, "b"), Gpu(2, "c")}}, 0);
  inventory.Place({{Gpu(0, "a"), Gpu(1, "c")}}, 2);
  EXPECT_EQ(inventory.expected(), 2);
  EXPECT_THAT(inventory.slots(), SizeIs(2));
}

TEST(ChipInventoryTest, DamagedMemoryIsForgotten) {
  const ChipInventory inventory("most 99999\nmost x\n3\n1 a\n1 b\n-1 c\nfour d\n\n2 e\n");
  EXPECT_EQ(inventory.expected(), 0);
  ASSERT_THAT(inventory.slots(), SizeIs(2));
  EXPECT_EQ(inventory.slots()[0].place, "a");
  EXPECT_EQ(inventory.slots()[1].place, "e");
}

TEST(ChipInventoryTest, MoreGpusThanAnyMachineHasAreNotBelieved) {
  std::vector<ChipHere> many;
  for (uint32_t i = 0; i <= ChipInventory::kMaxChips; ++i) many.push_back(Gpu(i, absl::StrCat(i)));
  ChipInventory inventory("");
  EXPECT_THAT(inventory.Place(many, 0), SizeIs(ChipInventory::kMaxChips));
}

}  // namespace
}  // namespace tacho::agent
