#include "agent/sources/tpu/core_states.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interop/tpu_metric_service.pb.h"

namespace tacho::agent {
namespace {

constexpr int kMaxSequencers = 7;

std::string Short(std::string name, const char* prefix) {
  return absl::StrReplaceAll(name, {{prefix, ""}});
}

void AddSequencers(const tpu_telemetry::CurrentCoreStateSummary& core, TpuCoreState* state) {
  for (int i = 0; i < std::min(core.sequencer_info_size(), kMaxSequencers); ++i) {
    const tpu_telemetry::SequencerInfo& sequencer = core.sequencer_info(i);
    const std::string kind =
        Short(tpu_telemetry::TpuSequencerTypeProto_Name(sequencer.sequencer_type()),
              "TPU_SEQUENCER_TYPE_");
    state->fields[absl::StrCat("sequencer_", i)] = kind;
    if (sequencer.has_pc()) {
      state->fields[absl::StrCat("pc_", i)] = absl::StrCat(sequencer.pc());
      absl::StrAppend(&state->text, ", pc ", sequencer.pc());
    }
    if (sequencer.has_run_id()) {
      state->fields[absl::StrCat("run_", i)] = absl::StrCat(sequencer.run_id());
    }
    if (i == 0 && sequencer.has_hlo_location()) state->fields["hlo"] = sequencer.hlo_location();
  }
}

TpuCoreState StateOf(int32_t number, const tpu_telemetry::CurrentCoreStateSummary& core) {
  TpuCoreState state;
  state.text = absl::StrCat("TPU core ", number);
  state.fields["core"] = absl::StrCat(number);
  const tpu_telemetry::TpuCoreIdentifier& id = core.core_id();
  // Absent is not 0: the fields say what they know.
  if (id.has_chip_id()) state.fields["chip"] = absl::StrCat(id.chip_id());
  if (id.core_on_chip().has_type()) {
    state.fields["core_type"] =
        Short(tpu_telemetry::TpuCoreTypeProto_Name(id.core_on_chip().type()), "TPU_CORE_TYPE_");
  }
  if (id.core_on_chip().has_index()) {
    state.fields["core_index"] = absl::StrCat(id.core_on_chip().index());
  }
  AddSequencers(core, &state);
  if (core.has_program_fingerprint()) {
    const std::string fingerprint = absl::BytesToHexString(core.program_fingerprint());
    state.fields["fingerprint"] = fingerprint;
    absl::StrAppend(&state.text, ", program ", fingerprint.substr(0, 16));
  }
  if (core.has_launch_id()) state.fields["launch"] = absl::StrCat(core.launch_id());
  state.fields["queued"] = absl::StrCat(core.queued_program_info_size());
  if (!core.error_message().empty()) {
    state.fields["error"] = core.error_message();
    absl::StrAppend(&state.text, ": ", core.error_message());
  }
  return state;
}

}  // namespace

std::vector<TpuCoreState> CoreStatesOf(
    const tpu::monitoring::runtime::GetTpuRuntimeStatusResponse& response) {
  std::vector<int32_t> numbers;
  for (const auto& [number, core] : response.core_states()) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  numbers.resize(std::min(numbers.size(), kMaxCoresTold));
  std::vector<TpuCoreState> states;
  for (const int32_t number : numbers) {
    states.push_back(StateOf(number, response.core_states().at(number)));
  }
  return states;
}

}  // namespace tacho::agent
