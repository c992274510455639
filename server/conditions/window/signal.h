// Signals are what detectors read: the meanings of metrics, independent of their names.
//
// The configuration maps names to meanings (`conditions.signals`), with defaults for the names of
// this project, libtpu, DCGM, TensorBoard, Keras, Lightning, Hugging Face and Megatron;
// docs/notation.md lists them.
#pragma once

#include <cstdint>

namespace tacho::server::conditions {

// In the order of the fields of config.v1.ConditionSignals: the number of a field is one more.
enum class Signal : uint8_t {
  // Signals of tasks have one value a step. Times are in seconds.
  kLoss,          // Training loss.
  kEvalLoss,      // Loss on held-out data.
  kAccuracy,      // 0..1
  kEvalAccuracy,  // 0..1
  kLearningRate,
  kGradNorm,        // Euclidean norm of the gradient, before clipping.
  kParamNorm,       // Norm of the weights.
  kUpdateNorm,      // Norm of what the optimizer adds to them in a step.
  kStepTime,        // start(k+1) - start(k)
  kDataWait,        // Waiting for input.
  kCompute,         // Own work before the barrier.
  kCommWait,        // Waiting in collectives: short on the slowest task.
  kCheckpointTime,  // Time of the step that a checkpoint blocked.
  kEvalTime,        // Time of the step that an evaluation took.
  kTokens,          // Trained on so far; a counter.
  kExamples,        // Trained on so far; a counter.
  kReplicaScalar,   // Must be the same on all tasks at a step, such as a checksum of the weights.

  // Signals of chips are sampled by time, with the labels host and chip.
  kChipBusy,         // Duty cycle, 0..1.
  kChipTensorBusy,   // Duty cycle of the matrix units, 0..1.
  kChipIdleSeconds,  // Since the core last worked.
  kHbmUsed,          // Bytes.
  kHbmTotal,         // Bytes.
  kChipPower,        // Watts.
  kChipPowerLimit,   // Watts.
  kChipTemperature,  // Degrees Celsius.
  kChipClock,        // Hertz, now.
  kChipClockMax,     // Hertz, at most.
  kThrottleReasons,  // Bits of NVML's clocksEventReasons; or libtpu's tpu_throttle_score, 0..10.
  kEccUncorrected,   // Counter.
  kEccCorrected,     // Counter.
  kXid,              // Counter of XID errors.
  kLinkErrors,       // Counter of ICI or NVLink errors.
  kRemappedRows,     // Counter.

  // Signals of hosts are sampled by time.
  kHostMemoryAvailable,  // Bytes.
  kHostMemoryTotal,      // Bytes.
  kHostCpuBusy,          // 0..1

  // Of tasks again: the numbers of fields do not change.
  kInputStage,  // Seconds of a step that a stage of the input worked; one metric for each stage.
  kCollective,  // Seconds of a step within a collective; one metric for each, and for each peer.
  kCollectiveBytes,  // Bytes of a step that it moved, by the same names.
  kCount,
};

}  // namespace tacho::server::conditions
