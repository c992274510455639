// Tests the events of TpuSource: errors that libtpu reports, and what its cores do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/agent/sources/tpu/tpu_source_fixture.h"
#include "tests/support/libtpu/fake_libtpu.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent {
namespace {

namespace proto = ::tpu::monitoring::runtime;
using ::tacho::testing::FakeLibtpu;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kSliceError[] = "slice.error.detected.gauge";

TEST_F(TpuSourceTest, ErrorIsAnEventOnceWhenItRisesAndOnceWhenItFalls) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  SetError(&libtpu, 0);
  Poll();
  EXPECT_EQ(Value("host_megascale_errors"), 0);
  SetError(&libtpu, 1);
  Poll();
  Poll();
  EXPECT_EQ(Value("host_megascale_errors"), 1);
  SetError(&libtpu, 0);
  Poll();
  Poll();
  EXPECT_THAT(Kinds(),
              ElementsAre("chips_held", "tpu_megascale_error", "tpu_megascale_error_cleared"));
  EXPECT_EQ(sink_.events[1].fields().at("error_type"), "HANG_DETECTED");
}

TEST_F(TpuSourceTest, ErrorOfTheSliceIsAnotherEventThanOneBetweenSlices) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  SetError(&libtpu, 1, kSliceError);
  SetError(&libtpu, 0);
  Poll();
  EXPECT_EQ(Value("host_slice_errors"), 1);
  EXPECT_EQ(Value("host_megascale_errors"), 0);
  EXPECT_THAT(Kinds(), ElementsAre("chips_held", "tpu_slice_error"));
  EXPECT_THAT(sink_.events[1].message(), HasSubstr("of the slice: HANG_DETECTED"));
  // The process ends with it: there is nobody left who would say that it is over.
  libtpu.Stop();
  machine_.RemoveProcess(41);
  Poll();
  EXPECT_THAT(Kinds(), Contains("tpu_slice_error_cleared"));
}

proto::GetTpuRuntimeStatusResponse TwoCores() {
  proto::GetTpuRuntimeStatusResponse states;
  for (const int core : {17, 16}) {
    auto& state = (*states.mutable_core_states())[core];
    state.mutable_core_id()->set_chip_id(8);
    state.mutable_core_id()->mutable_core_on_chip()->set_type(
        tpu_telemetry::TPU_CORE_TYPE_TENSOR_CORE);
    state.set_program_fingerprint(std::string("\x01\xab", 2));
    auto* const sequencer = state.add_sequencer_info();
    sequencer->set_sequencer_type(tpu_telemetry::TPU_SEQUENCER_TYPE_TENSOR_CORE_SEQUENCER);
    sequencer->set_pc(core == 17 ? 0 : 4711);
  }
  return states;
}

TEST_F(TpuSourceTest, CoresAreToldWhenAFileAsks) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  libtpu.SetCoreStates(TwoCores());
  Poll();
  ::tacho::testing::WriteFile(config_.snapshot_file(), "");
  Poll();
  EXPECT_FALSE(std::filesystem::exists(config_.snapshot_file()));
  EXPECT_THAT(Kinds(), ElementsAre("chips_held", "tpu_core_state", "tpu_core_state"));
  const auto& fields = sink_.events[1].fields();
  EXPECT_EQ(fields.at("core"), "16");
  EXPECT_EQ(fields.at("chip"), "8");
  EXPECT_EQ(fields.at("core_type"), "TENSOR_CORE");
  EXPECT_EQ(fields.at("fingerprint"), "01ab");
  EXPECT_EQ(fields.at("pc_0"), "4711");
  EXPECT_EQ(fields.at("sequencer_0"), "TENSOR_CORE_SEQUENCER");
  EXPECT_EQ(fields.at("reason"), "asked");
  EXPECT_FALSE(fields.contains("launch")) << "not told is not 0";
  EXPECT_EQ(sink_.events[2].fields().at("pc_0"), "0") << "told, and 0: it waits for input";
}

TEST_F(TpuSourceTest, CoresAreToldWhenAJobLooksHung) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  SetExecuted(&libtpu, {0, 10, 0});
  libtpu.SetCoreStates(TwoCores());
  for (int i = 0; i < 9; ++i) Poll();
  EXPECT_THAT(Kinds(),
              ElementsAre("chips_held", "tpu_looks_hung", "tpu_core_state", "tpu_core_state"));
  EXPECT_EQ(sink_.events[2].fields().at("reason"), "hung");
  SetExecuted(&libtpu, {0, 11, 0});
  Poll();
  EXPECT_THAT(sink_.events, SizeIs(4));
}

TEST_F(TpuSourceTest, LibtpuTooOldToTellItsCoresIsSaid) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  libtpu.SetOld(true);
  ::tacho::testing::WriteFile(config_.snapshot_file(), "");
  Poll();
  EXPECT_THAT(Kinds(), ElementsAre("chips_held", "tpu_core_states_missing"));
}

}  // namespace
}  // namespace tacho::agent
