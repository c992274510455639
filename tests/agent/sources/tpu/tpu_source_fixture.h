// A source of TPUs over a machine and a libtpu of the test's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/sources/tpu/tpu_source.h"
#include "tests/agent/recording_sink.h"
#include "tests/agent/sources/chips/chip_source_fixture.h"
#include "tests/agent/sources/tpu/tpu_test_machine.h"
#include "tests/support/libtpu/fake_libtpu.h"

namespace tacho::agent {

inline constexpr char kTotal[] = "tpu.runtime.hbm.memory.total.bytes";
inline constexpr char kUsed[] = "tpu.runtime.hbm.memory.usage.bytes";
inline constexpr char kExecution[] = "hlo.execution.timing.distribution.microseconds";
inline constexpr char kMegascale[] = "megascale.error.detected.gauge";
inline constexpr char kLatency[] =
    "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution";

class TpuSourceTest : public testing::ChipSourceFixture {
 protected:
  TpuSourceTest()
      : ChipSourceFixture({"ok", "idle", "held_without_metrics", "absent", "unknown"}) {}

  void SetUp() override {
    config_.set_interval(absl::ToInt64Nanoseconds(absl::Seconds(10)));
    config_.set_job("hosts");
    config_.set_timeout(absl::ToInt64Nanoseconds(absl::Seconds(20)));
    config_.set_distributions(true);
    config_.set_hung_after(absl::ToInt64Nanoseconds(absl::Seconds(60)));
    config_.set_snapshot_file(machine_.root() + "/snapshot");
    config_.set_sys(machine_.sys());
    config_.set_proc(machine_.proc());
    config_.set_dev(machine_.dev());
  }

  // Two chips, held by a process whose libtpu is `libtpu`.
  void HoldTwoChips(const ::tacho::testing::FakeLibtpu& libtpu) {
    machine_.AddV5p("0000:00:05.0", 0);
    machine_.AddV5p("0000:00:06.0", 1);
    machine_.AddProcess(41, {"vfio/0", "vfio/1"},
                        {{"TPU_RUNTIME_METRICS_PORTS", absl::StrCat(libtpu.port())},
                         {"TACHO_JOB", "bert"},
                         {"TACHO_TASK", "3"}});
  }
  static void SetMemory(::tacho::testing::FakeLibtpu* libtpu, int64_t first = 8) {
    libtpu->Set(::tacho::testing::DeviceGauges(kTotal, {{first, 100}, {first + 1, 100}}, true));
    libtpu->Set(::tacho::testing::DeviceGauges(kUsed, {{first, 40}, {first + 1, 60}}, true));
  }
  static void SetError(::tacho::testing::FakeLibtpu* libtpu, int64_t value,
                       const char* gauge = kMegascale) {
    ::tpu::monitoring::runtime::TPUMetric metric;
    metric.set_name(gauge);
    ::tacho::testing::AddWithPairs({{"error_type", "HANG_DETECTED"}}, &metric)
        ->mutable_gauge()
        ->set_as_int(value);
    libtpu->Set(metric);
  }
  static void SetExecuted(::tacho::testing::FakeLibtpu* libtpu,
                          const std::vector<int64_t>& counts) {
    ::tpu::monitoring::runtime::TPUMetric metric;
    metric.set_name(kExecution);
    ::tacho::testing::SetDistribution(
        1000, 2, counts, 1500, 0,
        ::tacho::testing::AddWithPairs({{"device_ordinal", "0"}, {"core_type", "tensorcore"}},
                                       &metric));
    libtpu->Set(metric);
  }
  static void SetLatency(::tacho::testing::FakeLibtpu* libtpu, const std::vector<int64_t>& counts,
                         int64_t start_seconds) {
    ::tpu::monitoring::runtime::TPUMetric metric;
    metric.set_name(kLatency);
    ::tacho::testing::SetDistribution(
        100, 2, counts, 150, start_seconds,
        ::tacho::testing::AddWithPairs({{"buffer-size", "8MB"}}, &metric));
    libtpu->Set(metric);
  }

  void Start() {
    TpuOptions options;
    options.host = "host-a";
    options.log = testing::LogTo(&log_);
    options.steady_now = [this] { return now_; };
    source_ = std::make_unique<TpuSource>(config_, std::move(options));
  }
  void Poll() {
    if (source_ == nullptr) Start();
    now_ += absl::Seconds(10);
    sink_.samples.clear();
    next_ = source_->Poll(now_, &sink_);
  }

  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const v1::Event& event : sink_.events) kinds.push_back(event.kind());
    return kinds;
  }

  testing::TpuTestMachine machine_;
  config::v1::Tpu config_;
  std::unique_ptr<TpuSource> source_;
  absl::Time now_ = absl::FromUnixSeconds(100000);
  absl::Time next_;
};

}  // namespace tacho::agent
