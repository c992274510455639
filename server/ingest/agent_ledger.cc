#include "server/ingest/agent_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace tacho::server::ingest {
namespace {

constexpr size_t kMaxLosses = 64;

}  // namespace

absl::Status AgentRegistry::Claim(const std::string& agent_id, Claimant claimant) {
  std::function<void()> evict_old;
  {
    absl::MutexLock lock(&mutex_);
    const auto [place, is_new] = speakers_.try_emplace(agent_id);
    Claimant& speaker = place->second;
    const bool changes_owner = !claimant.owner.empty() && speaker.owner != claimant.owner;
    if (!is_new && !changes_owner && speaker.generation != claimant.generation) {
      return absl::AlreadyExistsError(
          absl::StrCat("hello.agent_id: another stream speaks for \"", agent_id,
                       "\" with another spool; give each agent a name of its own"));
    }
    if (!is_new) {
      evict_old = std::move(speaker.evict);
      agents_.erase(speaker.stream);
    }
    speaker = std::move(claimant);
    agents_[speaker.stream] = agent_id;
  }
  if (evict_old) evict_old();
  return absl::OkStatus();
}

void AgentRegistry::Release(uint64_t stream) {
  absl::MutexLock lock(&mutex_);
  const auto agent = agents_.find(stream);
  if (agent == agents_.end()) return;
  const auto speaker = speakers_.find(agent->second);
  TACHO_CHECK(speaker != speakers_.end() && speaker->second.stream == stream);
  speakers_.erase(speaker);
  agents_.erase(agent);
}

AgentLedger::Stream& AgentLedger::Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    Close();
    agent_ = std::move(other.agent_);
  }
  return *this;
}

void AgentLedger::Stream::Close() {
  if (agent_ != nullptr) TACHO_CHECK(agent_->streams-- > 0);
  agent_.reset();
}

void AgentLedger::Stream::Heard(int64_t now_ns) {
  if (agent_ != nullptr) agent_->heard_ns.store(now_ns, std::memory_order_relaxed);
}

void AgentLedger::Stream::Lost(uint64_t rows, int64_t now_ns) {
  if (agent_ == nullptr) return;
  absl::MutexLock lock(&agent_->mutex);
  agent_->losses.push_back({now_ns, std::max<uint64_t>(rows, 1)});
  if (agent_->losses.size() > kMaxLosses) {
    // Nothing is forgotten but how it was spread in time.
    agent_->losses[1].rows += agent_->losses[0].rows;
    agent_->losses.pop_front();
  }
}

void AgentLedger::Stream::ClockSeen(double offset_seconds, double uncertainty_seconds) {
  if (agent_ == nullptr) return;
  absl::MutexLock lock(&agent_->mutex);
  agent_->clock_offset_seconds = offset_seconds;
  agent_->clock_uncertainty_seconds = uncertainty_seconds;
}

AgentLedger::Stream AgentLedger::Open(absl::string_view agent_id, int64_t now_ns,
                                      std::optional<double> clock_offset_seconds) {
  Stream stream;
  {
    absl::MutexLock lock(&mutex_);
    auto found = agents_.find(agent_id);
    if (found == agents_.end()) {
      if (agents_.size() >= kMaxAgents) DropOldest();
      found = agents_.emplace(std::string(agent_id), std::make_shared<Agent>(agent_id)).first;
    }
    stream.agent_ = found->second;
  }
  ++stream.agent_->streams;
  stream.Heard(now_ns);
  absl::MutexLock lock(&stream.agent_->mutex);
  if (clock_offset_seconds) {
    stream.agent_->clock_offset_seconds = clock_offset_seconds;
    stream.agent_->clock_uncertainty_seconds.reset();
  }
  return stream;
}

void AgentLedger::Serves(const Stream& stream, absl::string_view host) {
  if (stream.agent_ == nullptr || host.empty()) return;
  {
    absl::MutexLock lock(&stream.agent_->mutex);
    if (stream.agent_->hosts.size() >= kMaxHostsOfAgent) return;
    if (!stream.agent_->hosts.emplace(host).second) return;
  }
  absl::MutexLock lock(&mutex_);
  // One that was dropped meanwhile comes back with its next stream.
  const auto known = agents_.find(stream.agent_->id);
  if (known == agents_.end() || known->second != stream.agent_) return;
  hosts_[std::string(host)].insert(stream.agent_);
}

void AgentLedger::Imports(absl::string_view host) {
  absl::MutexLock lock(&mutex_);
  if (imported_.size() < kMaxAgents) imported_.emplace(host);
}

bool AgentLedger::IsImported(const std::string& host) const {
  absl::MutexLock lock(&mutex_);
  return imported_.contains(host);
}

bool AgentLedger::Reports(const std::string& host, int64_t now_ns) const {
  const std::optional<AgentState> agent = Find(host, now_ns);
  return agent.has_value() && agent->connected &&
         now_ns - agent->last_heard_ns <= absl::ToInt64Nanoseconds(kAgentHeardWithin);
}

std::optional<AgentState> AgentLedger::Find(const std::string& host, int64_t since_ns) const {
  std::shared_ptr<Agent> newest;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) return std::nullopt;
    for (const auto& agent : found->second) {
      if (newest == nullptr || newest->heard_ns < agent->heard_ns) newest = agent;
    }
  }
  if (newest == nullptr) return std::nullopt;
  AgentState facts;
  facts.id = newest->id;
  facts.connected = newest->streams > 0;
  facts.last_heard_ns = newest->heard_ns;
  absl::MutexLock lock(&newest->mutex);
  facts.clock_offset_seconds = newest->clock_offset_seconds;
  facts.clock_uncertainty_seconds = newest->clock_uncertainty_seconds;
  for (const Agent::Loss& loss : newest->losses) {
    if (loss.time_ns < since_ns) continue;
    facts.lost_rows += loss.rows;
    facts.last_loss_ns = std::max(facts.last_loss_ns, loss.time_ns);
  }
  return facts;
}

void AgentLedger::DropOldest() {
  const auto oldest = std::min_element(
      agents_.begin(), agents_.end(),
      [](const auto& a, const auto& b) { return a.second->heard_ns < b.second->heard_ns; });
  const std::shared_ptr<Agent> agent = oldest->second;
  agents_.erase(oldest);
  absl::MutexLock lock(&agent->mutex);
  for (const std::string& host : agent->hosts) {
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) continue;
    found->second.erase(agent);
    if (found->second.empty()) hosts_.erase(found);
  }
}

}  // namespace tacho::server::ingest
