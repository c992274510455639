// Pins the default of every key of the section `conditions`. The defaults decide which alerts most
// users get, so none may change by accident: change a line here only together with CHANGELOG.md.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/config_field.h"
#include "tacho/config/v1/conditions.pb.h"
#include "tests/server/conditions/settings.h"

namespace tacho::server::conditions {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "key=value", with the value in the syntax of the file.
constexpr char kDefaults[] = R"(
enabled=true
interval=5s
profile=auto
stacks=off
forget_after=6h
host_window=6h
points=2048
job_bytes=64MiB
total_bytes=256MiB
max_jobs=5000
settle=45s
profiler.every_steps=0
profiler.every=0s
profiler.min_interval=10m
profiler.duration=2s
profiler.tasks=4
progress.stalled.enabled=true
progress.stalled.for=10s
progress.stalled.clear_after=0s
progress.stalled.severity=
progress.stalled.floor=2m
progress.stalled.factor=5
progress.stalled.startup=1h
progress.stalled.compile=1h
progress.stalled.restore=1h
progress.stalled.checkpoint=30m
progress.stalled.eval=1h
progress.stalled.blocked_factor=2
progress.stalled.settled_floor=30s
progress.stalled.settled_after=1h
progress.straggling.enabled=true
progress.straggling.for=10s
progress.straggling.clear_after=1m
progress.straggling.severity=
progress.straggling.window_steps=10
progress.straggling.windows=3
progress.straggling.k=6
progress.straggling.min_ratio=1.1
progress.straggling.uneven_share=0.2
progress.straggling.chronic=2
progress.straggling.min_lost=0.05
progress.input_bound.enabled=true
progress.input_bound.for=1m
progress.input_bound.clear_after=1m
progress.input_bound.severity=
progress.input_bound.span=5m
progress.input_bound.min_idle=0.15
progress.input_bound.min_wait=0.1
progress.low_utilization.enabled=true
progress.low_utilization.for=5m
progress.low_utilization.clear_after=2m
progress.low_utilization.severity=
progress.low_utilization.span=10m
progress.low_utilization.min_mfu=0.1
progress.low_utilization.min_tensor=0.1
progress.low_utilization.min_busy=0.5
progress.slower_than_baseline.enabled=true
progress.slower_than_baseline.for=1m
progress.slower_than_baseline.clear_after=1m
progress.slower_than_baseline.severity=
progress.slower_than_baseline.steps=100
progress.slower_than_baseline.min_ratio=1.15
progress.slower_than_baseline.min_baseline_steps=50
progress.throughput_dropped.enabled=true
progress.throughput_dropped.for=10s
progress.throughput_dropped.clear_after=1m
progress.throughput_dropped.severity=
progress.throughput_dropped.min_ratio=1.15
progress.throughput_dropped.min_before=50
progress.throughput_dropped.min_after=20
progress.throughput_dropped.min_drift=1.1
progress.task_missing.enabled=true
progress.task_missing.for=10s
progress.task_missing.clear_after=10s
progress.task_missing.severity=
progress.task_missing.grace=3m
progress.task_missing.gone_after=2m
progress.task_missing.in_step_after=30s
progress.agent_silent.enabled=true
progress.agent_silent.for=10s
progress.agent_silent.clear_after=10s
progress.agent_silent.severity=
progress.agent_silent.disconnected_after=30s
progress.agent_silent.silent_after=30s
progress.trainer_silent.enabled=true
progress.trainer_silent.for=30s
progress.trainer_silent.clear_after=10s
progress.trainer_silent.severity=
progress.trainer_silent.silent_after=3m
progress.trainer_silent.phase_limit=1h
progress.clock_skewed.enabled=true
progress.clock_skewed.for=30s
progress.clock_skewed.clear_after=1m
progress.clock_skewed.severity=
progress.clock_skewed.max_offset=1s
progress.data_loss.enabled=true
progress.data_loss.for=0s
progress.data_loss.clear_after=5m
progress.data_loss.severity=
progress.data_loss.recent=10m
progress.trainer_exited.enabled=true
progress.trainer_exited.for=30s
progress.trainer_exited.clear_after=0s
progress.trainer_exited.severity=
progress.phase_long.enabled=true
progress.phase_long.for=10s
progress.phase_long.clear_after=0s
progress.phase_long.severity=
progress.phase_long.floor=1m
progress.phase_long.factor=3
progress.slow_collective.enabled=true
progress.slow_collective.for=10s
progress.slow_collective.clear_after=1m
progress.slow_collective.severity=
progress.slow_collective.steps=20
progress.slow_collective.min_ratio=1.5
progress.slow_collective.min_share=0.05
progress.slow_collective.k=6
curves.diverged.enabled=true
curves.diverged.for=0s
curves.diverged.clear_after=1m
curves.diverged.severity=
curves.diverged.loss_values=3
curves.diverged.loss_window=20
curves.diverged.gradient_values=5
curves.diverged.gradient_start_values=64
curves.diverged.eval_values=2
curves.diverged.run_away_points=20
curves.diverged.run_away_share=1
curves.diverged.run_away_relative=0.5
curves.diverged.run_away_noise=10
curves.loss_spike.enabled=true
curves.loss_spike.for=0s
curves.loss_spike.clear_after=2m
curves.loss_spike.severity=
curves.loss_spike.reference_points=64
curves.loss_spike.least_reference=24
curves.loss_spike.sigmas=6
curves.loss_spike.least_relative=0.05
curves.loss_spike.values=3
curves.loss_spike.of_values=6
curves.loss_spike.slow_points=50
curves.loss_spike.give_up_points=200
curves.loss_spike.rate_jump=2
curves.plateau.enabled=true
curves.plateau.for=1m
curves.plateau.clear_after=1m
curves.plateau.severity=
curves.plateau.share=0.3
curves.plateau.bins=24
curves.plateau.horizon=1.5
curves.plateau.least_improvement=0.01
curves.plateau.least_points=96
curves.plateau.least_steps=150
curves.plateau.end_share=0.1
curves.plateau.most_improvement=0.02
curves.plateau.end_rate=0.1
curves.oscillating.enabled=true
curves.oscillating.for=30s
curves.oscillating.clear_after=1m
curves.oscillating.severity=
curves.oscillating.points=96
curves.oscillating.correlation=0.5
curves.oscillating.anticorrelation=0.4
curves.oscillating.least_swing=0.05
curves.gradient_exploding.enabled=true
curves.gradient_exploding.for=0s
curves.gradient_exploding.clear_after=1m
curves.gradient_exploding.severity=
curves.gradient_exploding.values=5
curves.gradient_exploding.reference=256
curves.gradient_exploding.least_reference=32
curves.gradient_exploding.factor=10
curves.gradient_exploding.sigmas=6
curves.gradient_exploding.limit=0
curves.gradient_vanished.enabled=true
curves.gradient_vanished.for=30s
curves.gradient_vanished.clear_after=1m
curves.gradient_vanished.severity=
curves.gradient_vanished.values=10
curves.gradient_vanished.reference=1024
curves.gradient_vanished.least_reference=32
curves.gradient_vanished.share=0.001
curves.gradient_vanished.floor=1e-9
curves.weights_frozen.enabled=true
curves.weights_frozen.for=30s
curves.weights_frozen.clear_after=1m
curves.weights_frozen.severity=
curves.weights_frozen.values=20
curves.weights_frozen.share=1e-9
curves.weights_frozen.end_rate=0.01
curves.overfitting.enabled=true
curves.overfitting.for=0s
curves.overfitting.clear_after=1m
curves.overfitting.severity=
curves.overfitting.least_evaluations=8
curves.overfitting.patience=5
curves.overfitting.least_rise=0.02
curves.overfitting.sigmas=4
curves.replica_disagreement.enabled=true
curves.replica_disagreement.for=0s
curves.replica_disagreement.clear_after=1m
curves.replica_disagreement.severity=
curves.replica_disagreement.steps=20
curves.replica_disagreement.least_steps=1
curves.replica_disagreement.tolerance=0
hardware.memory_leak.enabled=true
hardware.memory_leak.for=2m
hardware.memory_leak.clear_after=2m
hardware.memory_leak.severity=
hardware.memory_leak.horizon=24h
hardware.memory_leak.critical_left=1h
hardware.memory_leak.warmup=5m
hardware.memory_leak.min_span=10m
hardware.memory_leak.min_growth=0.01
hardware.memory_leak.min_tau=0.7
hardware.memory_pressure.enabled=true
hardware.memory_pressure.for=30s
hardware.memory_pressure.clear_after=1m
hardware.memory_pressure.severity=
hardware.memory_pressure.host_free=0.05
hardware.memory_pressure.device_used=0.98
hardware.memory_pressure.span=1m
hardware.throttled.enabled=true
hardware.throttled.for=10s
hardware.throttled.clear_after=1m
hardware.throttled.severity=
hardware.throttled.min_clock=0.9
hardware.throttled.min_busy=0.2
hardware.throttled.hot_celsius=85
hardware.throttled.capped=0.98
hardware.throttled.span=2m
hardware.hardware_errors.enabled=true
hardware.hardware_errors.for=0s
hardware.hardware_errors.clear_after=5m
hardware.hardware_errors.severity=
hardware.hardware_errors.span=15m
hardware.hardware_errors.link_errors=1
hardware.hardware_errors.corrected_errors=100
)";

std::map<std::string, std::string> ExpectedDefaults() {
  std::map<std::string, std::string> defaults;
  for (const absl::string_view line : absl::StrSplit(kDefaults, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> row = absl::StrSplit(line, absl::MaxSplits('=', 1));
    EXPECT_TRUE(defaults.insert(row).second) << row.first << " has two lines";
  }
  return defaults;
}

// Compares each key of `actual` with its row in `expected`, and removes the row. `prefix` is the
// path of `actual`. Lists are empty by default.
void ExpectValues(const Message& actual, const std::string& prefix,
                  std::map<std::string, std::string>* expected) {
  for (int i = 0; i < actual.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *actual.GetDescriptor()->field(i);
    const std::string key = prefix + field.name();
    if (field.is_repeated()) {
      EXPECT_EQ(actual.GetReflection()->FieldSize(actual, &field), 0) << key;
      continue;
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // A condition without any line is new: users know none of its defaults yet.
      const auto first = expected->lower_bound(key + ".");
      if (first == expected->end() || !absl::StartsWith(first->first, key + ".")) continue;
      ExpectValues(actual.GetReflection()->GetMessage(actual, &field), key + ".", expected);
      continue;
    }
    const auto row = expected->find(key);
    if (row == expected->end()) {
      ADD_FAILURE() << key << " has no line in kDefaults";
      continue;
    }
    const std::unique_ptr<Message> pinned(actual.New());
    const absl::Status status =
        config::SetFromText(row->second, /*quoted=*/false, field, pinned.get());
    EXPECT_TRUE(status.ok()) << key << ": " << status;
    EXPECT_EQ(config::FormatField(actual, field, 0), config::FormatField(*pinned, field, 0)) << key;
    expected->erase(row);
  }
}

TEST(ConditionDefaultsTest, EachKeyHasTheDefaultThatUsersKnow) {
  const config::v1::Conditions config = Defaults();
  std::map<std::string, std::string> expected = ExpectedDefaults();
  ExpectValues(config, "", &expected);
  EXPECT_THAT(expected, ::testing::IsEmpty()) << "these keys do not exist";
}

}  // namespace
}  // namespace tacho::server::conditions
