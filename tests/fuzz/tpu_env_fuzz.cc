// Texts about this machine that others write: a TPU VM's tpu-env, labels of pods and nodes, and
// what the metadata server announces.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "agent/sources/identity/fact_files.h"
#include "agent/sources/identity/host_facts.h"
#include "agent/sources/notices/maintenance.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = tacho::agent::ParseTpuEnv(text);
  if (entries.size() > tacho::agent::kMaxTpuEnvEntries) std::abort();
  tacho::agent::HostFacts facts;
  for (const auto& [key, value] : entries) {
    if (key.empty() || key.size() > tacho::agent::kMaxTpuEnvKey) std::abort();
    if (value.size() > tacho::agent::kMaxTpuEnvValue) std::abort();
    tacho::agent::AddFact(key, value, "tpu-env", &facts);
  }
  for (const auto& [label, fact] : facts) {
    if (fact.value.empty() || fact.value.size() > tacho::agent::kMaxFactBytes) std::abort();
  }
  tacho::agent::ParsePodLabels(text);
  tacho::agent::ParseNodeLabels(text);
  const auto notice = tacho::agent::ParseNotice(text);
  if (notice.ok() && (*notice == "NONE" || *notice == "FALSE")) std::abort();
  const auto planned = tacho::agent::ParsePlannedMaintenance(text);
  if (planned.ok() && planned->has_value()) {
    for (const auto& [name, value] : **planned) {
      if (value.empty() || value.size() > tacho::agent::kMaxPlannedText) std::abort();
    }
  }
  return 0;
}
