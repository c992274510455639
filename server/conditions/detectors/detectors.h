// The registry of conditions. Each has one declaration and one row here:
//   - its message in the configuration (tacho/config/v1/conditions_*.proto) gives its name, its
//     keys, and the default, unit and limits of each threshold;
//   - its detector is a pure function of a job's window and that message. The definition of the
//     condition, with its source and its limits, opens the file of the detector.
// CONTRIBUTING.md, "Add a condition", walks through all steps.
//
// Every key of a message is set, as ParseYaml() leaves it. Durations are in nanoseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"
#include "tacho/config/v1/conditions_curves.pb.h"
#include "tacho/config/v1/conditions_hardware.pb.h"
#include "tacho/config/v1/conditions_progress.pb.h"

namespace tacho::server::conditions {

using Progress = config::v1::ConditionsProgress;
using Curves = config::v1::ConditionsCurves;
using Hardware = config::v1::ConditionsHardware;

// Whether a job advances, how fast, and whether its tasks and agents report.
Finding DetectStalled(const JobWindow& window, const Progress::Stalled& settings);
Finding DetectPhaseLong(const JobWindow& window, const Progress::PhaseLong& settings);
Finding DetectStraggling(const JobWindow& window, const Progress::Straggling& settings);
Finding DetectSlowCollective(const JobWindow& window, const Progress::SlowCollective& settings);
Finding DetectInputBound(const JobWindow& window, const Progress::InputBound& settings);
Finding DetectLowUtilization(const JobWindow& window, const Progress::LowUtilization& settings);
Finding DetectSlowerThanBaseline(const JobWindow& window,
                                 const Progress::SlowerThanBaseline& settings);
Finding DetectThroughputDropped(const JobWindow& window,
                                const Progress::ThroughputDropped& settings);
Finding DetectTaskMissing(const JobWindow& window, const Progress::TaskMissing& settings);
Finding DetectAgentSilent(const JobWindow& window, const Progress::AgentSilent& settings);
Finding DetectTrainerSilent(const JobWindow& window, const Progress::TrainerSilent& settings);
Finding DetectTrainerExited(const JobWindow& window, const Progress::TrainerExited& settings);
Finding DetectClockSkewed(const JobWindow& window, const Progress::ClockSkewed& settings);
Finding DetectDataLoss(const JobWindow& window, const Progress::DataLoss& settings);

// The curves of training.
Finding DetectDiverged(const JobWindow& window, const Curves::Diverged& settings);
Finding DetectLossSpike(const JobWindow& window, const Curves::LossSpike& settings);
Finding DetectPlateau(const JobWindow& window, const Curves::Plateau& settings);
Finding DetectOscillating(const JobWindow& window, const Curves::Oscillating& settings);
Finding DetectGradientExploding(const JobWindow& window, const Curves::GradientExploding& settings);
Finding DetectGradientVanished(const JobWindow& window, const Curves::GradientVanished& settings);
Finding DetectWeightsFrozen(const JobWindow& window, const Curves::WeightsFrozen& settings);
Finding DetectOverfitting(const JobWindow& window, const Curves::Overfitting& settings);
Finding DetectReplicaDisagreement(const JobWindow& window,
                                  const Curves::ReplicaDisagreement& settings);

// The health of chips and hosts.
Finding DetectMemoryLeak(const JobWindow& window, const Hardware::MemoryLeak& settings);
Finding DetectMemoryPressure(const JobWindow& window, const Hardware::MemoryPressure& settings);
Finding DetectThrottled(const JobWindow& window, const Hardware::Throttled& settings);
Finding DetectHardwareErrors(const JobWindow& window, const Hardware::HardwareErrors& settings);

// What a detector is given, and until when.
enum class Judges : uint8_t {
  kJob,      // The whole window; the job's end clears the condition.
  kRunning,  // The tasks that live, with their hosts and chips (running_tasks.h); the same.
  kEnds,     // The whole window, also after the job's end.
};

// A detector with its settings. A disabled one is in the table too: its condition is not judged,
// and the engine clears it if it is open.
struct Detector {
  std::string name;  // The name of the condition: "Stalled".
  bool enabled = true;
  std::function<Finding(const JobWindow&)> detect;  // Pure, and called from one thread.
  // A finding must be present this long before the condition is raised, and absent (or not judged)
  // this long before it is cleared.
  absl::Duration hold_for;
  absl::Duration clear_after;
  std::optional<Severity> severity;  // Replaces the finding's; nullopt keeps that.
  Judges judges = Judges::kJob;
};

// `settings` is the message of one condition: all have `enabled`, `for`, `clear_after` and
// `severity`. Its type has the name of the condition.
template <typename Settings>
Detector Row(Finding (*detect)(const JobWindow&, const Settings&), const Settings& settings,
             Judges judges = Judges::kJob) {
  return {
      .name = Settings::descriptor()->name(),
      .enabled = settings.enabled(),
      .detect = [detect, settings](const JobWindow& window) { return detect(window, settings); },
      .hold_for = absl::Nanoseconds(settings.for_()),
      .clear_after = absl::Nanoseconds(settings.clear_after()),
      .severity = ParseSeverity(settings.severity()),
      .judges = judges};
}

inline std::vector<Detector> DetectorsOf(const Progress& config) {
  return {Row(DetectStalled, config.stalled()),
          Row(DetectStraggling, config.straggling(), Judges::kRunning),
          Row(DetectInputBound, config.input_bound(), Judges::kRunning),
          Row(DetectLowUtilization, config.low_utilization(), Judges::kRunning),
          Row(DetectSlowerThanBaseline, config.slower_than_baseline(), Judges::kRunning),
          Row(DetectThroughputDropped, config.throughput_dropped(), Judges::kRunning),
          Row(DetectTaskMissing, config.task_missing()),
          Row(DetectAgentSilent, config.agent_silent()),
          Row(DetectTrainerSilent, config.trainer_silent()),
          Row(DetectClockSkewed, config.clock_skewed(), Judges::kRunning),
          Row(DetectDataLoss, config.data_loss()),
          Row(DetectTrainerExited, config.trainer_exited(), Judges::kEnds),
          Row(DetectPhaseLong, config.phase_long()),
          Row(DetectSlowCollective, config.slow_collective(), Judges::kRunning)};
}

inline std::vector<Detector> DetectorsOf(const Curves& config) {
  return {Row(DetectDiverged, config.diverged()),
          Row(DetectLossSpike, config.loss_spike()),
          Row(DetectPlateau, config.plateau()),
          Row(DetectOscillating, config.oscillating()),
          Row(DetectGradientExploding, config.gradient_exploding()),
          Row(DetectGradientVanished, config.gradient_vanished()),
          Row(DetectWeightsFrozen, config.weights_frozen()),
          Row(DetectOverfitting, config.overfitting()),
          Row(DetectReplicaDisagreement, config.replica_disagreement())};
}

inline std::vector<Detector> DetectorsOf(const Hardware& config) {
  return {Row(DetectMemoryLeak, config.memory_leak(), Judges::kRunning),
          Row(DetectMemoryPressure, config.memory_pressure(), Judges::kRunning),
          Row(DetectThrottled, config.throttled(), Judges::kRunning),
          Row(DetectHardwareErrors, config.hardware_errors())};
}

// All conditions of the section `conditions`, or of one entry of its `jobs`.
template <typename Section>
std::vector<Detector> AllDetectors(const Section& section) {
  std::vector<Detector> all = DetectorsOf(section.progress());
  for (Detector& each : DetectorsOf(section.curves())) all.push_back(std::move(each));
  for (Detector& each : DetectorsOf(section.hardware())) all.push_back(std::move(each));
  return all;
}

}  // namespace tacho::server::conditions
