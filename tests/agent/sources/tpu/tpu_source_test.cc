#include "agent/sources/tpu/tpu_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/agent/sources/tpu/tpu_source_fixture.h"
#include "tests/support/libtpu/fake_libtpu.h"

namespace tacho::agent {
namespace {

namespace proto = ::tpu::monitoring::runtime;
using ::tacho::agent::testing::StoredSample;
using ::tacho::testing::AddWithPairs;
using ::tacho::testing::DeviceGauges;
using ::tacho::testing::FakeLibtpu;
using ::tacho::testing::SetDistribution;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kDuty[] = "tpu.runtime.tensorcore.dutycycle.percent";
constexpr char kQueue[] = "hlo.queue.size.gauge";
constexpr char kOurLatency[] = "host_megascale_dcn_transfer_latency_seconds";

TEST_F(TpuSourceTest, MachineWithoutTpusCostsAndSaysNothing) {
  machine_.AddFunction("0000:00:04.0", "0x1ae0", "0x0042");
  Poll();
  Poll();
  EXPECT_THAT(sink_.samples, IsEmpty());
  EXPECT_THAT(sink_.layouts, IsEmpty());
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(source_->status().ok());
}

TEST_F(TpuSourceTest, IdleChipsHaveTheirConstantsAndNoMeasurements) {
  machine_.AddV5p("0000:00:05.0", 0);
  config_.add_addresses("localhost:1");
  Poll();
  EXPECT_EQ(StateOf("0"), "idle");
  EXPECT_EQ(Value("chip_peak_flops", "chip=0"), 459e12);
  EXPECT_EQ(Value("chip_hbm_nameplate_bytes", "chip=0"), 103e9);
  EXPECT_EQ(Value("chip_hbm_peak_bytes_per_second", "chip=0"), 2460e9);
  EXPECT_EQ(Value("host_chips_expected"), 1);
  EXPECT_EQ(Value("host_chips_present"), 1);
  EXPECT_EQ(Value("host_tpu_metrics_port_up", "port=localhost:1"), 0);
  EXPECT_EQ(Find("chip_duty_cycle_ratio", "chip=0"), nullptr) << "missing is not 0";
  EXPECT_TRUE(source_->status().ok());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(TpuSourceTest, RecordsUnderTheNamesAndUnitsThatConditionsKnow) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  libtpu.Set(DeviceGauges(kDuty, {{8, 50}, {9, 75}}));
  libtpu.Set(DeviceGauges("tpu.runtime.hbm.utilization.percent", {{8, 20}, {9, 30}}));
  libtpu.Set(DeviceGauges("tpu.runtime.tensorcore.idle_duration.seconds", {{8, 0.5}, {9, 1.5}}));
  Poll();
  EXPECT_EQ(next_, now_ + absl::Seconds(10));
  EXPECT_EQ(Value("chip_duty_cycle_ratio", "chip=0"), 0.5);
  EXPECT_EQ(Value("chip_duty_cycle_ratio", "chip=1"), 0.75);
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=0"), 100);
  EXPECT_EQ(Value("chip_hbm_used_bytes", "chip=1"), 60);
  EXPECT_EQ(Value("chip_hbm_bandwidth_ratio", "chip=1"), 0.3);
  EXPECT_EQ(Value("chip_idle_seconds", "chip=1"), 1.5);
  EXPECT_EQ(Value("chip_device_info", "chip=1device=9"), 1) << "the runtime's number, beside";
  EXPECT_EQ(StateOf("0"), "ok");
  EXPECT_EQ(sink_.samples[0].job, "hosts");
  EXPECT_EQ(sink_.samples[0].host, "host-a");
}

TEST_F(TpuSourceTest, EveryMetricHasTypeUnitAndHelp) {
  for (const TpuMetric& metric : TpuMetrics()) {
    for (const Metric* one : {&metric.metric, &metric.sum}) {
      if (one->name == nullptr) continue;
      EXPECT_NE(std::string(one->unit), "") << one->name;
      EXPECT_NE(std::string(one->help), "") << one->name;
    }
    EXPECT_EQ(metric.kind == TpuMetricKind::kDistribution, metric.sum.name != nullptr);
  }
}

TEST_F(TpuSourceTest, AsksOnlyForWhatIsSupportedAndForOneProcessAlone) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  libtpu.List(kLatency);  // Listed, and NOT_FOUND: a job of one slice.
  Poll();
  EXPECT_THAT(libtpu.asked(), SizeIs(3));
  EXPECT_THAT(libtpu.asked(), Contains(Pair(kLatency, true)));
  Poll();
  EXPECT_THAT(libtpu.asked(), SizeIs(5)) << "what was not found is left alone for a minute";
  EXPECT_EQ(libtpu.lists(), 1);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(TpuSourceTest, OldLibtpuThatCannotListIsAskedForEverything) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  libtpu.SetOld(true);
  Poll();
  EXPECT_EQ(Value("chip_hbm_used_bytes", "chip=1"), 60);
  EXPECT_THAT(libtpu.asked(), SizeIs(TpuMetrics().size()));
  Poll();
  EXPECT_THAT(libtpu.asked(), SizeIs(TpuMetrics().size() + 2));
}

TEST_F(TpuSourceTest, DevicesOnSeveralPortsCountOnce) {
  std::vector<std::unique_ptr<FakeLibtpu>> all;
  std::string ports;
  for (int i = 0; i < 8; ++i) {
    FakeLibtpu& libtpu = *all.emplace_back(std::make_unique<FakeLibtpu>());
    absl::StrAppend(&ports, i == 0 ? "" : ",", libtpu.port());
    // Each reports its own chip and its neighbour's.
    libtpu.Set(DeviceGauges(kTotal, {{i, 100.0 + i}, {(i + 1) % 8, 100.0 + (i + 1) % 8}}, true));
  }
  std::vector<std::string> files;
  for (int i = 0; i < 8; ++i) {
    machine_.AddV5p(absl::StrCat("0000:00:0", i, ".0"), i);
    files.push_back(absl::StrCat("vfio/", i));
  }
  machine_.AddProcess(41, files, {{"TPU_RUNTIME_METRICS_PORTS", ports}});
  Poll();
  int rows = 0;
  for (const StoredSample& sample : sink_.samples) {
    rows += sample.metric == "chip_hbm_total_bytes" ? 1 : 0;
  }
  EXPECT_EQ(rows, 8);
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=7"), 107);
}

TEST_F(TpuSourceTest, V3HasMemoryByCoreAndDutyByChip) {
  FakeLibtpu libtpu;
  for (int i = 0; i < 2; ++i) {
    const std::string address = absl::StrCat("0000:00:0", i, ".0");
    machine_.AddFunction(address, "0x1ae0", "0x0027", "0x004f");
    machine_.SetAccel(address, i);
  }
  machine_.AddProcess(41, {"accel0", "accel1"},
                      {{"TPU_RUNTIME_METRICS_PORTS", absl::StrCat(libtpu.port())}});
  libtpu.Set(DeviceGauges(kTotal, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}, true));
  libtpu.Set(DeviceGauges(kDuty, {{0, 10}, {1, 20}}));
  Poll();
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=0core=1"), 2);
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=1core=0"), 3);
  EXPECT_EQ(Value("chip_duty_cycle_ratio", "chip=0"), 0.1);
  EXPECT_EQ(Value("chip_duty_cycle_ratio", "chip=1"), 0.2);
}

TEST_F(TpuSourceTest, OrdinalsOfAProcessAreItsOwnDevices) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  proto::TPUMetric queue;
  queue.set_name(kQueue);
  AddWithPairs({{"device_ordinal", "1"}, {"core_type", "tensorcore"}}, &queue)
      ->mutable_gauge()
      ->set_as_int(4);
  libtpu.Set(queue);
  SetExecuted(&libtpu, {0, 10, 0});
  Poll();
  EXPECT_EQ(Value("chip_queue_size", "chip=1core_type=tensorcore"), 4);
  EXPECT_EQ(Value("chip_execution_mean_seconds", "chip=0core_type=tensorcore"), 1500e-6);
  EXPECT_EQ(Value("chip_execution_p50_seconds", "chip=0core_type=tensorcore"), 1500e-6);
  SetExecuted(&libtpu, {0, 0, 0});
  Poll();
  EXPECT_TRUE(IsStale("chip_execution_p50_seconds", "chip=0core_type=tensorcore"))
      << "nothing counted is no time";
}

TEST_F(TpuSourceTest, DistributionsAreHistogramsOfWhatCameSince) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  SetLatency(&libtpu, {5, 5, 5, 5}, 1000);
  Poll();
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=+Inf"), 0);
  SetLatency(&libtpu, {5, 6, 7, 8}, 1000);
  Poll();
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=0.0001"), 0);
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=0.0002"), 1);
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=0.0004"), 3);
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=+Inf"), 6);
  EXPECT_DOUBLE_EQ(Value(absl::StrCat(kOurLatency, "_sum"), "buffer_size=8MB"), 6 * 150e-6);
  SetLatency(&libtpu, {1, 0, 0, 0}, absl::ToUnixSeconds(now_));
  Poll();
  EXPECT_EQ(Value(kOurLatency, "buffer_size=8MBle=+Inf"), 7) << "the process was restarted";
}

TEST_F(TpuSourceTest, BucketsThatDoNotFitAreLeftOutAndCounted) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  proto::TPUMetric metric;
  metric.set_name(kLatency);
  proto::Metric* const one = AddWithPairs({}, &metric);
  SetDistribution(100, 2, {5, 5, 5}, 150, 1000, one);
  one->mutable_distribution()->add_bucket_counts(1);
  libtpu.Set(metric);
  Poll();
  EXPECT_EQ(Value("host_tpu_values_left_out"), 1);
  EXPECT_EQ(Find(kOurLatency, "le=+Inf"), nullptr);
}

TEST_F(TpuSourceTest, DistributionsAreNotAskedForWhereNotWanted) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  SetLatency(&libtpu, {5, 5, 5}, 1000);
  config_.set_distributions(false);
  Poll();
  EXPECT_THAT(libtpu.asked(), Not(Contains(Pair(kLatency, true))));
}

TEST_F(TpuSourceTest, PortThatIsClosedWhileAProcessHoldsTheChipIsItsOwnState) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  libtpu.Stop();
  Poll();
  EXPECT_EQ(StateOf("0"), "held_without_metrics");
  EXPECT_EQ(source_->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("process 41"));
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr(libtpu.address()));
}

TEST_F(TpuSourceTest, MetricsSwitchedOffByTheJobAreSaid) {
  machine_.AddV5p("0000:00:05.0", 0);
  machine_.AddProcess(41, {"vfio/0"}, {{"TPU_RUNTIME_METRICS_PORTS", ""}});
  Poll();
  EXPECT_EQ(StateOf("0"), "held_without_metrics");
  EXPECT_THAT(std::string(source_->status().message()), HasSubstr("TPU_RUNTIME_METRICS_PORTS"));
}

TEST_F(TpuSourceTest, ValuesEndWhenTheProcessEnds) {
  auto libtpu = std::make_unique<FakeLibtpu>();
  HoldTwoChips(*libtpu);
  SetMemory(libtpu.get());
  Poll();
  libtpu.reset();
  machine_.RemoveProcess(41);
  Poll();
  EXPECT_EQ(StateOf("0"), "idle");
  EXPECT_TRUE(IsStale("chip_hbm_used_bytes", "chip=1"));
  EXPECT_THAT(Kinds(), ElementsAre("chips_held", "chips_released"));
  EXPECT_EQ(sink_.events[0].fields().at("job"), "bert");
  EXPECT_EQ(sink_.events[0].fields().at("task"), "3");
  EXPECT_EQ(sink_.events[0].fields().at("chips"), "0,1");
}

TEST_F(TpuSourceTest, ChipThatIsGoneIsMissedAfterARestartToo) {
  machine_.AddV5p("0000:00:05.0", 0);
  machine_.AddV5p("0000:00:06.0", 1);
  config_.add_addresses("localhost:1");
  Poll();
  std::filesystem::remove_all(machine_.sys() + "/bus/pci/devices/0000:00:05.0");
  source_.reset();
  Poll();
  EXPECT_EQ(StateOf("0"), "absent");
  EXPECT_EQ(StateOf("1"), "idle");
  EXPECT_EQ(Value("host_chips_expected"), 2);
  EXPECT_EQ(Value("host_chips_present"), 1);
  machine_.RemoveDevice("vfio/1");
  Poll();
  EXPECT_EQ(StateOf("1"), "absent") << "its device file is gone";
}

TEST_F(TpuSourceTest, LibtpuThatDoesNotAnswerIsLeftAloneForAWhile) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  config_.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(1)));
  libtpu.SetDelay(absl::Seconds(30));
  const absl::Time begin = absl::Now();
  Poll();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20)) << "one call's timeout, not one a metric";
  EXPECT_EQ(StateOf("0"), "held_without_metrics");
  EXPECT_THAT(log_, SizeIs(1));
  Poll();
  libtpu.SetDelay(absl::ZeroDuration());
  Poll();
  EXPECT_EQ(StateOf("0"), "held_without_metrics") << "after two timeouts not for 20 s";
  Poll();
  EXPECT_EQ(StateOf("0"), "ok");
}

// The holder may be a process that the agent may not look at: then the chip is not known to be
// idle.
TEST_F(TpuSourceTest, ChipWithoutAHolderIsUnknownIfAProcessCannotBeLookedAt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  machine_.AddV5p("0000:00:05.0", 0);
  machine_.AddProcess(41, {"vfio/0"}, {});
  machine_.AddProcess(42, {}, {});
  std::filesystem::permissions(machine_.proc() + "/41/fd", std::filesystem::perms::none);
  ::setfsuid(65534);
  Poll();
  ::setfsuid(0);
  EXPECT_EQ(StateOf("0"), "unknown");
  EXPECT_EQ(Value("host_chips_present"), 1);
  EXPECT_THAT(Kinds(), IsEmpty());
  machine_.RemoveProcess(41);
  Poll();  // Looks through all processes again after 10 s.
  Poll();
  EXPECT_EQ(StateOf("0"), "idle");
}

TEST_F(TpuSourceTest, TwoJobsWithEqualDeviceNumbersStayApart) {
  FakeLibtpu first;
  FakeLibtpu second;
  for (int i = 0; i < 2; ++i) machine_.AddV5p(absl::StrCat("0000:00:0", i, ".0"), i);
  machine_.AddProcess(41, {"vfio/0"}, {{"TPU_RUNTIME_METRICS_PORTS", absl::StrCat(first.port())}});
  machine_.AddProcess(42, {"vfio/1"}, {{"TPU_RUNTIME_METRICS_PORTS", absl::StrCat(second.port())}});
  first.Set(DeviceGauges(kTotal, {{0, 11}}, true));
  second.Set(DeviceGauges(kTotal, {{0, 22}}, true));
  Poll();
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=0"), 11);
  EXPECT_EQ(Value("chip_hbm_total_bytes", "chip=1"), 22);
}

TEST_F(TpuSourceTest, ConfiguredAddressNeedsNoChipsHere) {
  FakeLibtpu libtpu;
  SetMemory(&libtpu);
  config_.add_addresses(libtpu.address());
  Poll();
  EXPECT_EQ(Value("chip_hbm_used_bytes", "chip=device 9"), 60);
  EXPECT_EQ(Find("host_chips_expected"), nullptr);
}

TEST_F(TpuSourceTest, RefusedRowIsSaidAndTheNextOneIsTaken) {
  FakeLibtpu libtpu;
  HoldTwoChips(libtpu);
  SetMemory(&libtpu);
  sink_.RefuseAfter(0);
  Poll();
  EXPECT_THAT(log_, SizeIs(1));
  sink_.RefuseNothing();
  Poll();
  EXPECT_EQ(Value("chip_hbm_used_bytes", "chip=1"), 60);
  EXPECT_THAT(Kinds(), ElementsAre("chips_held")) << "it waited";
}

}  // namespace
}  // namespace tacho::agent
