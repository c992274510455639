#include "agent/sources/chips/chip_holders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/agent/sources/tpu/tpu_test_machine.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ParseEnvironTest, TakesWhatIsNameAndValue) {
  constexpr char kText[] = "A=1\0B=x=y\0EMPTY=\0=no\0broken\0A=2\0LAST=z";
  EXPECT_THAT(
      ParseEnviron(absl::string_view(kText, sizeof(kText) - 1)),
      UnorderedElementsAre(Pair("A", "1"), Pair("B", "x=y"), Pair("EMPTY", ""), Pair("LAST", "z")));
  EXPECT_THAT(ParseEnviron(""), IsEmpty());
}

TEST(HolderWatchTest, FindsWhoHasTheDeviceFilesOpen) {
  testing::TpuTestMachine machine;
  machine.AddProcess(40, {"null"}, {});
  machine.AddProcess(41, {"null", "vfio/0", "vfio/1"}, {{"TACHO_JOB", "bert"}});
  machine.AddProcess(7, {"vfio/2", "vfio/2"}, {});
  HolderWatch watch(machine.proc());
  const std::string vfio = machine.dev() + "/vfio/";
  const ChipHolders& found = watch.Look(kStart, {vfio + "0", vfio + "1", vfio + "2", vfio + "3"});
  ASSERT_THAT(found.holders, SizeIs(2));
  EXPECT_EQ(found.holders[0].pid, 7);
  EXPECT_EQ(found.holders[1].pid, 41);
  EXPECT_THAT(found.holders[1].devices, ElementsAre(vfio + "0", vfio + "1"));
  ASSERT_TRUE(found.holders[1].environment.has_value());
  EXPECT_EQ(found.holders[1].environment->at("TACHO_JOB"), "bert");
  EXPECT_TRUE(found.complete);
}

TEST(HolderWatchTest, LooksThroughAllSeldomAndAtHoldersAlways) {
  testing::TpuTestMachine machine;
  machine.AddProcess(41, {"vfio/0"}, {});
  HolderWatch watch(machine.proc());
  const std::set<std::string> devices = {machine.dev() + "/vfio/0"};
  EXPECT_THAT(watch.Look(kStart, devices).holders, SizeIs(1));
  machine.AddProcess(42, {"vfio/0"}, {});
  EXPECT_THAT(watch.Look(kStart + absl::Seconds(30), devices).holders, SizeIs(1));
  machine.RemoveProcess(41);
  EXPECT_THAT(watch.Look(kStart + absl::Seconds(31), devices).holders,
              ElementsAre(::testing::Field(&ChipHolder::pid, 42)))
      << "the holder is gone, and the last look was ten seconds ago";
  machine.RemoveProcess(42);
  EXPECT_THAT(watch.Look(kStart + absl::Seconds(42), devices).holders, IsEmpty());
}

TEST(HolderWatchTest, EnvironmentThatIsTooLargeIsNotRead) {
  testing::TpuTestMachine machine;
  machine.AddProcess(41, {"vfio/0"}, {});
  ::tacho::testing::WriteFile(machine.proc() + "/41/environ",
                              "A=" + std::string(kMaxEnvironBytes - 1, 'x'));
  HolderWatch watch(machine.proc());
  const std::set<std::string> devices = {machine.dev() + "/vfio/0"};
  const ChipHolders& found = watch.Look(kStart, devices);
  ASSERT_THAT(found.holders, SizeIs(1));
  EXPECT_FALSE(found.holders[0].environment.has_value());
}

}  // namespace
}  // namespace tacho::agent
