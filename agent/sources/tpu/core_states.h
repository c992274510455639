// What each core of a TPU does, as fields of an event, to be compared over all hosts of a job.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tpu::monitoring::runtime {
class GetTpuRuntimeStatusResponse;
}  // namespace tpu::monitoring::runtime

namespace tacho::agent {

// More cores than any machine has. Beyond, they are left out.
inline constexpr size_t kMaxCoresTold = 64;

struct TpuCoreState {
  std::string text;  // For a person.
  // core (global), chip (the runtime's number), core_type, core_index, fingerprint (hexadecimal),
  // launch, queued, error, and for each sequencer i of the first seven: sequencer_i (its kind),
  // pc_i, run_i.
  std::map<std::string, std::string> fields;
};

// By core. Empty where nothing is told.
std::vector<TpuCoreState> CoreStatesOf(
    const tpu::monitoring::runtime::GetTpuRuntimeStatusResponse& response);

}  // namespace tacho::agent
