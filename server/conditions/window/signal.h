// What a detector reads: the meaning of a metric, whatever its name is.
//
// Which metric names have which meaning is configuration (`conditions.signals`), with defaults for
// the names of this project, of libtpu, DCGM, TensorBoard, Keras, Lightning, Hugging Face and
// Megatron; docs/notation.md lists them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace tacho::server::conditions {

enum class Signal : uint8_t {
  // Of tasks, one value a step. Times in seconds.
  kLoss,          // Training loss.
  kEvalLoss,      // Loss on held-out data.
  kAccuracy,      // 0..1
  kEvalAccuracy,  // 0..1
  kLearningRate,
  kGradNorm,        // Euclidean norm of the gradient, before clipping.
  kParamNorm,       // Of the weights.
  kUpdateNorm,      // Of what the optimizer adds to them in a step.
  kStepTime,        // start(k+1) - start(k)
  kDataWait,        // Waiting for input.
  kCompute,         // Own work before the barrier.
  kCommWait,        // Waiting in collectives: short on the slowest task.
  kCheckpointTime,  // Time of the step that a checkpoint blocked.
  kEvalTime,        // Time of the step that an evaluation took.
  kTokens,          // Trained on so far; a counter.
  kExamples,        // Trained on so far; a counter.
  kReplicaScalar,   // Must be the same on all tasks at a step, such as a checksum of the weights.

  // Of chips, sampled by time. Labels host and chip.
  kChipBusy,         // Duty cycle, 0..1.
  kChipTensorBusy,   // Of the matrix units, 0..1.
  kChipIdleSeconds,  // Since the core last worked.
  kHbmUsed,          // Bytes.
  kHbmTotal,         // Bytes.
  kChipPower,        // Watts.
  kChipPowerLimit,   // Watts.
  kChipTemperature,  // Degrees Celsius.
  kChipClock,        // Hertz, as is.
  kChipClockMax,     // Hertz, as could be.
  kThrottleReasons,  // Bits of NVML's clocksEventReasons; or libtpu's tpu_throttle_score, 0..10.
  kEccUncorrected,   // Counter.
  kEccCorrected,     // Counter.
  kXid,              // Counter of XID errors.
  kLinkErrors,       // Counter of ICI or NVLink errors.
  kRemappedRows,     // Counter.

  // Of hosts, sampled by time.
  kHostMemoryAvailable,  // Bytes.
  kHostMemoryTotal,      // Bytes.
  kHostCpuBusy,          // 0..1
  kCount,
};

// "loss", "eval_loss", …: the key below `conditions.signals`.
absl::string_view SignalName(Signal signal);
std::optional<Signal> ParseSignal(absl::string_view name);

}  // namespace tacho::server::conditions
