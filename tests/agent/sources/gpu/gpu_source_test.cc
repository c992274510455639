#include "agent/sources/gpu/gpu_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/agent/recording_sink.h"
#include "tests/agent/sources/chips/chip_source_fixture.h"
#include "tests/agent/sources/gpu/gpu_test_machine.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GpuSourceTest : public testing::ChipSourceFixture {
 protected:
  GpuSourceTest() : ChipSourceFixture({"ok", "absent", "lost", "hanging", "reset_required"}) {}

  void SetUp() override {
    config_.set_interval(absl::ToInt64Nanoseconds(absl::Seconds(10)));
    config_.set_job("hosts");
    config_.set_proc("/nowhere");
    config_.set_library(testing::GpuTestMachine::Library());
    config_.set_names("tacho");
    config_.set_dcgm_host_label("Hostname");
    config_.set_hang_after(absl::ToInt64Nanoseconds(absl::Seconds(30)));
    config_.set_gpm(true);
    machine_.AddGpu(0);
    machine_.AddGpu(1);
    machine_.Write();
    Restart();
  }

  void Restart(absl::Duration wait = absl::Seconds(60)) {
    GpuOptions options;
    options.host = "host-a";
    options.log = testing::LogTo(&log_);
    options.steady_now = [this] { return steady_; };
    options.wait = wait;
    source_ = std::make_unique<GpuSource>(config_, std::move(options));
  }

  // The row ten seconds later.
  void Poll() {
    steady_ += absl::Seconds(10);
    sink_.samples.clear();
    next_ = source_->Poll(steady_, &sink_);
  }

  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const v1::Event& event : sink_.events) {
      const auto chip = event.fields().find("chip");
      kinds.push_back(absl::StrCat(event.kind(), " ",
                                   chip != event.fields().end() ? chip->second : std::string()));
    }
    return kinds;
  }
  // Polls until an event is there, since another thread brings it.
  void PollUntil(size_t events) {
    for (int i = 0; i < 500 && sink_.events.size() < events; ++i) {
      Poll();
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  testing::GpuTestMachine machine_;
  config::v1::Gpu config_;
  std::unique_ptr<GpuSource> source_;
  absl::Time steady_ = absl::FromUnixSeconds(100000);
  absl::Time next_;
};

TEST_F(GpuSourceTest, RecordsUnderTheNamesAndUnitsThatConditionsKnow) {
  Poll();
  EXPECT_EQ(next_, steady_ + absl::Seconds(10));
  EXPECT_EQ(Value("chip_duty_cycle_ratio", "chip=0"), 0.75);
  EXPECT_EQ(Value("chip_hbm_used_bytes", "chip=1"), 20937965568);
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=0"), 85899345920);
  EXPECT_EQ(Value("chip_power_watts", "chip=0"), 650.5);
  EXPECT_EQ(Value("chip_power_limit_watts", "chip=0"), 700);
  EXPECT_DOUBLE_EQ(Value("chip_energy_joules_total", "chip=0"), 123456.789);
  EXPECT_EQ(Value("chip_temperature_celsius", "chip=0"), 62);
  EXPECT_EQ(Value("chip_clock_hertz", "chip=0"), 1.83e9);
  EXPECT_EQ(Value("chip_clock_max_hertz", "chip=0"), 1.98e9);
  EXPECT_EQ(Value("chip_throttle_reasons", "chip=0"), 4);
  EXPECT_EQ(Value("chip_throttled_seconds_total", "chip=0reason=power"), 2.5);
  EXPECT_EQ(Value("chip_ecc_corrected_total", "chip=0"), 7);
  EXPECT_EQ(Value("chip_ecc_uncorrected_total", "chip=0"), 1);
  EXPECT_EQ(Value("chip_remapped_rows_total", "chip=0"), 3);
  EXPECT_EQ(Value("chip_link_errors_total", "chip=0"), 16);
  EXPECT_EQ(Value("chip_link_transmit_bytes_total", "chip=0"), 1024 * 1024);
  EXPECT_EQ(Value("chip_pcie_replays_total", "chip=0"), 5);
  EXPECT_EQ(Value("chip_xid_errors_total", "chip=0"), 0);
  EXPECT_EQ(Value("host_chips_expected"), 2);
  EXPECT_EQ(Value("host_chips_present"), 2);
  EXPECT_EQ(StateOf("0"), "ok");
  EXPECT_EQ(sink_.samples[0].job, "hosts");
  EXPECT_EQ(sink_.samples[0].host, "host-a");
  EXPECT_THAT(sink_.events, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(GpuSourceTest, EveryMetricHasTypeUnitAndHelp) {
  config_.set_names("both");
  Restart();
  Poll();
  ASSERT_THAT(sink_.layouts, SizeIs(1));
  for (const auto& series : sink_.layouts[0].series()) {
    EXPECT_NE(series.metric().type(), v1::METRIC_TYPE_UNSPECIFIED) << series.metric().name();
    EXPECT_NE(series.metric().unit(), "") << series.metric().name();
    EXPECT_NE(series.metric().help(), "") << series.metric().name();
    EXPECT_LE(series.labels_size(), 16);
  }
}

TEST_F(GpuSourceTest, DcgmNamesHaveDcgmsUnitsAndLabels) {
  config_.set_names("dcgm");
  machine_.Set(0, "GpmQueryDeviceSupport", "1");
  machine_.Set(0, "GpmSampleGet", "1");
  machine_.Set(0, "gpm.5", "37.5");
  machine_.Write();
  Restart();
  Poll();
  Poll();
  const std::string labels =
      "chip=0gpu=0UUID=GPU-0pci_bus_id=00000000:3B:00.0device=nvidia0"
      "modelName=NVIDIA H100 80GB HBM3Hostname=host-aDCGM_FI_DRIVER_VERSION=550.54.15";
  EXPECT_EQ(Value("DCGM_FI_DEV_GPU_UTIL", labels), 75) << "per cent";
  EXPECT_EQ(Value("DCGM_FI_DEV_POWER_USAGE", labels), 650.5) << "W";
  EXPECT_EQ(Value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels), 123456789) << "mJ";
  EXPECT_EQ(Value("DCGM_FI_DEV_FB_USED", labels), 19968) << "MiB";
  EXPECT_EQ(Value("DCGM_FI_DEV_FB_RESERVED", labels), 512) << "MiB";
  EXPECT_EQ(Value("DCGM_FI_DEV_SM_CLOCK", labels), 1830) << "MHz";
  EXPECT_EQ(Value("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", labels), 0.375) << "ratio";
  EXPECT_EQ(Value("DCGM_FI_DEV_XID_ERRORS", labels), 0);
  EXPECT_EQ(Find("chip_power_watts", "chip=0"), nullptr);
}

TEST_F(GpuSourceTest, LostGpuIsToldOnceAndStaysExpectedWhileOthersGoOn) {
  Poll();
  machine_.Set(1, "fail.all", "15");
  machine_.Write();
  Poll();
  Poll();
  EXPECT_EQ(StateOf("1"), "lost");
  EXPECT_EQ(Value("host_chips_expected"), 2);
  EXPECT_EQ(Value("host_chips_present"), 1);
  EXPECT_EQ(Value("chip_power_watts", "chip=0"), 650.5);
  EXPECT_TRUE(IsStale("chip_power_watts", "chip=1")) << "not 0";
  EXPECT_THAT(Kinds(), ElementsAre("chip_lost 1"));
  machine_.Unset(1, "fail.all");
  machine_.Write();
  Poll();
  EXPECT_THAT(Kinds(), ElementsAre("chip_lost 1", "chip_ok 1"));
}

TEST_F(GpuSourceTest, GpuThatVanishedIsMissedAfterARestart) {
  Poll();
  machine_.RemoveGpu(0);
  machine_.Write();
  Restart();
  Poll();
  EXPECT_EQ(StateOf("0"), "absent");
  EXPECT_EQ(StateOf("1"), "ok") << "though its index is 0 now";
  EXPECT_EQ(Value("host_chips_expected"), 2);
  EXPECT_EQ(Value("host_chips_present"), 1);
  EXPECT_THAT(Kinds(), ElementsAre("chip_absent 0"));
}

TEST_F(GpuSourceTest, GpuThatHangsHoldsUpNeitherTheOthersNorTheAgent) {
  Poll();
  Restart(absl::Seconds(1));
  Poll();
  machine_.Set(0, "hang", "1");
  machine_.Write();
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 5; ++i) Poll();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(60));
  EXPECT_EQ(StateOf("0"), "hanging");
  EXPECT_EQ(StateOf("1"), "ok");
  EXPECT_TRUE(IsStale("chip_power_watts", "chip=0"));
  EXPECT_EQ(Value("chip_power_watts", "chip=1"), 650.5);
  EXPECT_THAT(Kinds(), ElementsAre("chip_hanging 0"));
  machine_.Unset(0, "hang");
  machine_.Write();
  PollUntil(2);
  EXPECT_THAT(Kinds(), ElementsAre("chip_hanging 0", "chip_ok 0"));
}

TEST_F(GpuSourceTest, AgentStopsWhileAGpuHangs) {
  Poll();
  Restart(absl::Milliseconds(100));
  Poll();
  machine_.Set(0, "hang", "1");
  machine_.Write();
  Poll();
  source_.reset();
}

TEST_F(GpuSourceTest, DriverThatHangsWhenOpenedIsAskedAgainWhenItAnswers) {
  Poll();
  machine_.Set(0, "hang", "1");
  machine_.Write();
  Restart(absl::Milliseconds(100));
  for (int i = 0; i < 5; ++i) Poll();
  EXPECT_EQ(StateOf("0"), "hanging");
  EXPECT_EQ(StateOf("1"), "hanging");
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kDeadlineExceeded);
  machine_.Unset(0, "hang");
  machine_.Write();
  PollUntil(4);
  EXPECT_EQ(StateOf("0"), "ok");
}

TEST_F(GpuSourceTest, DriverThatWasUpgradedIsLoadedAgain) {
  Poll();
  machine_.Set(0, "fail.all", "18");
  machine_.Set(1, "fail.all", "18");
  machine_.Write();
  Poll();
  EXPECT_EQ(StateOf("0"), "absent");
  machine_.Unset(0, "fail.all");
  machine_.Unset(1, "fail.all");
  machine_.Write();
  Poll();
  Poll();
  Poll();
  EXPECT_EQ(StateOf("0"), "ok");
  EXPECT_EQ(Value("chip_power_watts", "chip=0"), 650.5);
}

TEST_F(GpuSourceTest, SameXidTwiceIsTwoErrorsAndTwoEvents) {
  Poll();
  machine_.Add("event 1 1 8 63");
  machine_.Add("event 2 1 8 63");
  machine_.Write();
  PollUntil(2);
  EXPECT_THAT(Kinds(), ElementsAre("chip_xid 1", "chip_xid 1"));
  EXPECT_EQ(sink_.events[0].fields().at("xid"), "63");
  EXPECT_EQ(Value("chip_xid_errors_total", "chip=1"), 2);
  EXPECT_EQ(Value("chip_xid_errors_total", "chip=0"), 0);
}

TEST_F(GpuSourceTest, XidsAreCountedOnOverAReopening) {
  Poll();
  machine_.Add("event 1 1 8 63");
  machine_.Write();
  PollUntil(1);
  machine_.ClearLines();
  machine_.Set(0, "fail.all", "18");
  machine_.Write();
  Poll();
  machine_.Unset(0, "fail.all");
  machine_.Write();
  for (int i = 0; i < 4; ++i) Poll();
  EXPECT_EQ(StateOf("0"), "ok");
  EXPECT_EQ(Value("chip_xid_errors_total", "chip=1"), 1);
}

TEST_F(GpuSourceTest, FloodOfXidsIsCountedAndToldTenTimes) {
  Poll();
  constexpr int kFlood = 40;
  for (int i = 1; i <= kFlood; ++i) machine_.Add(absl::StrCat("event ", i, " 0 8 45"));
  machine_.Write();
  for (int i = 0; i < 500 && Value("chip_xid_errors_total", "chip=0") < kFlood; ++i) {
    Poll();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(Value("chip_xid_errors_total", "chip=0"), kFlood);
  EXPECT_THAT(sink_.events, SizeIs(GpuSource::kEventsPerMinute));
}

TEST_F(GpuSourceTest, MachineWithoutADriverCostsAndSaysNothing) {
  config_.set_library("/nowhere/libnvidia-ml.so.1");
  Restart();
  sink_.checkpoints.clear();
  Poll();
  Poll();
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_THAT(sink_.layouts, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(source_->status().ok());
}

TEST_F(GpuSourceTest, MachineThatShouldHaveGpusSaysWhyItHasNone) {
  config_.set_library("/nowhere/libnvidia-ml.so.1");
  config_.set_expected(8);
  Restart();
  Poll();
  EXPECT_EQ(Value("host_chips_expected"), 8);
  EXPECT_EQ(Value("host_chips_present"), 0);
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("/nowhere/libnvidia-ml.so.1"));
  EXPECT_THAT(log_, SizeIs(1));
}

TEST_F(GpuSourceTest, DriverThatFailsIsTriedAgainWithGrowingPauses) {
  machine_.Add("result 9");
  machine_.Write();
  for (int i = 0; i < 10; ++i) Poll();
  EXPECT_THAT(log_, SizeIs(3)) << "after 0, 15 and 45 of 100 seconds";
  EXPECT_THAT(log_[0], HasSubstr("Driver Not Loaded (9)"));
}

TEST_F(GpuSourceTest, ProcessesAreToldWithTheChipsThatTheyHold) {
  machine_.Add("0 pid 4242");
  machine_.Add("1 pid 4242");
  machine_.Write();
  Poll();
  Poll();
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].kind(), "chips_held");
  EXPECT_EQ(sink_.events[0].fields().at("chips"), "0,1");
  machine_.Set(0, "fail.all", "15");
  machine_.Write();
  Poll();
  EXPECT_THAT(sink_.events, SizeIs(2)) << "lost, and not released";
}

TEST_F(GpuSourceTest, RefusedRowIsSaidAndEventsWait) {
  Poll();
  machine_.Set(1, "fail.all", "15");
  machine_.Write();
  sink_.RefuseAfter(0);
  Poll();
  EXPECT_THAT(sink_.events, IsEmpty());
  sink_.RefuseNothing();
  Poll();
  EXPECT_THAT(Kinds(), ElementsAre("chip_lost 1"));
}

}  // namespace
}  // namespace tacho::agent
