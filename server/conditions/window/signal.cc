#include "server/conditions/window/signal.h"

#include <array>
#include <cstddef>

namespace tacho::server::conditions {
namespace {

// In the order of Signal.
constexpr std::array<absl::string_view, static_cast<size_t>(Signal::kCount)> kNames = {
    "loss",
    "eval_loss",
    "accuracy",
    "eval_accuracy",
    "learning_rate",
    "grad_norm",
    "param_norm",
    "update_norm",
    "step_time",
    "data_wait",
    "compute",
    "comm_wait",
    "checkpoint_time",
    "eval_time",
    "tokens",
    "examples",
    "replica_scalar",
    "chip_busy",
    "chip_tensor_busy",
    "chip_idle_seconds",
    "hbm_used",
    "hbm_total",
    "chip_power",
    "chip_power_limit",
    "chip_temperature",
    "chip_clock",
    "chip_clock_max",
    "throttle_reasons",
    "ecc_uncorrected",
    "ecc_corrected",
    "xid",
    "link_errors",
    "remapped_rows",
    "host_memory_available",
    "host_memory_total",
    "host_cpu_busy",
};

}  // namespace

absl::string_view SignalName(Signal signal) { return kNames.at(static_cast<size_t>(signal)); }

std::optional<Signal> ParseSignal(absl::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Signal>(i);
  }
  return std::nullopt;
}

}  // namespace tacho::server::conditions
