#include "server/ingest/agent_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server::ingest {

absl::Status AgentRegistry::Claim(const std::string& agent_id, uint64_t generation, uint64_t stream,
                                  std::function<void()> evict) {
  std::function<void()> evict_old;
  {
    absl::MutexLock lock(&mutex_);
    const auto [holder, is_new] = holders_.try_emplace(agent_id);
    if (!is_new && holder->second.generation != generation) {
      return absl::AlreadyExistsError(
          absl::StrCat("hello.agent_id: another stream speaks for \"", agent_id,
                       "\" with another spool; give each agent a name of its own"));
    }
    if (!is_new) {
      evict_old = std::move(holder->second.evict);
      agents_.erase(holder->second.stream);
    }
    holder->second = {generation, stream, std::move(evict)};
    agents_[stream] = agent_id;
  }
  if (evict_old) evict_old();
  return absl::OkStatus();
}

void AgentRegistry::Release(uint64_t stream) {
  absl::MutexLock lock(&mutex_);
  const auto agent = agents_.find(stream);
  if (agent == agents_.end()) return;
  holders_.erase(agent->second);
  agents_.erase(agent);
}

}  // namespace tacho::server::ingest
