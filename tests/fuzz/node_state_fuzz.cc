// Nodes come from the API server. Any answer is refused or gives a bounded state.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "agent/sources/kubernetes/node_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto state = tacho::agent::ParseNode(text, "n1", "7");
  tacho::agent::Recall(text);
  if (!state.ok() || !state->has_value()) return 0;
  const tacho::agent::NodeState& now = **state;
  if (now.version.empty() || now.version == "7") std::abort();
  if (now.taints.size() > tacho::agent::kMaxNodeItems) std::abort();
  if (now.unhealthy.size() > tacho::agent::kMaxNodeItems) std::abort();
  // What was told once is no news, also from what a restart remembers.
  if (!tacho::agent::CompareNodes(now, now).empty()) std::abort();
  const auto recalled = tacho::agent::Recall(tacho::agent::Remember(now));
  if (!tacho::agent::CompareNodes(recalled, now).empty()) std::abort();
  for (const auto& notice : tacho::agent::CompareNodes(tacho::agent::NodeState(), now)) {
    if (notice.kind.empty() || notice.message.size() > tacho::agent::kMaxNoticeBytes) std::abort();
  }
  return 0;
}
