// Questions to agents. The answers come on gRPC's threads, part by part; the thread that asks waits
// for all of them at once.
#include "server/ingest/agent_asker.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"

namespace tacho::server::ingest {
namespace {

// What an agent needs to get its answer here before the time is over.
constexpr absl::Duration kWayBack = absl::Milliseconds(500);

absl::StatusOr<AgentAsker::Findings> Parse(const std::string& data) {
  auto findings = std::make_shared<v1::AgentFindings>();
  if (!findings->ParseFromString(data)) {
    return absl::DataLossError("the agent's report cannot be parsed");
  }
  if (!findings->refusal().empty()) return absl::FailedPreconditionError(findings->refusal());
  return AgentAsker::Findings(std::move(findings));
}

}  // namespace

struct AgentAsker::Question {
  struct Addressee {
    uint64_t stream = 0;
    std::vector<std::string> hosts;
    std::shared_ptr<const Send> send;
    std::shared_ptr<Pending> pending;
  };
  std::vector<Addressee> addressees;
};

void AgentAsker::Join(uint64_t stream, std::set<std::string> kinds, Send send) {
  absl::MutexLock lock(&mutex_);
  Agent& agent = agents_[stream];
  agent.kinds = std::move(kinds);
  agent.send = std::make_shared<const Send>(std::move(send));
}

void AgentAsker::Serves(uint64_t stream, absl::string_view host) {
  absl::MutexLock lock(&mutex_);
  const auto agent = agents_.find(stream);
  if (agent == agents_.end() || agent->second.hosts.size() >= kMaxHostsOfStream) return;
  agent->second.hosts.emplace(host);
}

void AgentAsker::Leave(uint64_t stream) {
  absl::MutexLock lock(&mutex_);
  const auto agent = agents_.find(stream);
  if (agent == agents_.end()) return;
  Fail(absl::UnavailableError("its agent disconnected before it answered"), &agent->second);
  agents_.erase(agent);
}

void AgentAsker::Fail(absl::Status failure, Agent* agent) {
  if (agent->pending == nullptr || agent->pending->settled) return;
  agent->pending->failure = std::move(failure);
  agent->pending->settled = true;
}

void AgentAsker::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  for (auto& [stream, agent] : agents_) {
    Fail(absl::UnavailableError("the collector is shutting down"), &agent);
  }
}

void AgentAsker::Heard(uint64_t stream, const v1::AgentReport& untrusted) {
  absl::MutexLock lock(&mutex_);
  const auto agent = agents_.find(stream);
  if (agent == agents_.end()) return;
  Pending* const pending = agent->second.pending.get();
  if (pending == nullptr || pending->settled || pending->id != untrusted.id()) return;
  if (untrusted.part() != pending->parts ||
      pending->data.size() + untrusted.data().size() > pending->max_bytes) {
    pending->data.clear();
    pending->failure = absl::DataLossError(
        absl::StrCat("the agent's report has a hole, or more than ", pending->max_bytes, " bytes"));
    pending->settled = true;
    return;
  }
  ++pending->parts;
  pending->data += untrusted.data();
  pending->settled = untrusted.last();
}

AgentAsker::Question AgentAsker::Begin(const std::set<std::string>& hosts, const std::string& kind,
                                       Answers* answers) {
  Question question;
  std::set<std::string> missing = hosts;
  absl::MutexLock lock(&mutex_);
  // The newest stream first: an older one of the same agent may be dying.
  for (auto agent = agents_.rbegin(); agent != agents_.rend() && !missing.empty(); ++agent) {
    Question::Addressee addressee = {.stream = agent->first, .send = agent->second.send};
    for (const std::string& host : agent->second.hosts) {
      if (missing.erase(host) > 0) addressee.hosts.push_back(host);
    }
    if (addressee.hosts.empty()) continue;
    absl::Status refusal;
    if (closed_) {
      refusal = absl::UnavailableError("the collector is shutting down");
    } else if (!agent->second.kinds.contains(kind)) {
      refusal = absl::UnimplementedError(
          absl::StrCat("its agent does not answer such requests (", kind,
                       "): it is older, or its requests are switched off"));
    } else if (agent->second.pending != nullptr) {
      refusal = absl::ResourceExhaustedError("its agent is asked for another thing now: try again");
    }
    if (!refusal.ok()) {
      for (const std::string& host : addressee.hosts) answers->insert({host, refusal});
      continue;
    }
    addressee.pending = std::make_shared<Pending>();
    addressee.pending->id = ++last_id_;
    agent->second.pending = addressee.pending;
    question.addressees.push_back(std::move(addressee));
  }
  for (const std::string& host : missing) {
    answers->insert({host, absl::NotFoundError("no agent of this host is connected")});
  }
  const uint64_t share = kMaxAskedBytes / std::max<uint64_t>(1, question.addressees.size());
  for (const Question::Addressee& addressee : question.addressees) {
    addressee.pending->max_bytes = std::clamp(share, kMinReportBytes, kMaxReportBytes);
  }
  return question;
}

AgentAsker::Answers AgentAsker::Ask(const std::set<std::string>& hosts, const std::string& kind,
                                    const v1::AgentRequest& request, absl::Duration timeout) {
  const absl::Time deadline = MonotonicNow() + timeout;
  Answers answers;
  const Question question = Begin(hosts, kind, &answers);
  for (const Question::Addressee& addressee : question.addressees) {
    v1::AgentRequest copy = request;
    copy.set_id(addressee.pending->id);
    copy.set_deadline_ms(static_cast<uint32_t>(
        absl::ToInt64Milliseconds(std::max(timeout - kWayBack, timeout / 2))));
    copy.set_max_report_bytes(static_cast<uint32_t>(addressee.pending->max_bytes));
    (*addressee.send)(std::move(copy));
  }

  Settle(question, deadline);
  for (const Question::Addressee& addressee : question.addressees) {
    const Pending& pending = *addressee.pending;
    const absl::StatusOr<Findings> findings =
        pending.failure.ok() ? Parse(pending.data) : pending.failure;
    for (const std::string& host : addressee.hosts) answers.insert({host, findings});
  }
  return answers;
}

void AgentAsker::Settle(const Question& question, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const auto all_settled = [&question]() {
    return std::all_of(question.addressees.begin(), question.addressees.end(),
                       [](const Question::Addressee& one) { return one.pending->settled; });
  };
  AwaitUntil(&mutex_, absl::Condition(&all_settled), deadline);
  for (const Question::Addressee& addressee : question.addressees) {
    Pending& pending = *addressee.pending;
    if (!pending.settled) {
      pending.failure = absl::DeadlineExceededError("its agent did not answer in time");
      pending.settled = true;
    }
    const auto agent = agents_.find(addressee.stream);
    if (agent != agents_.end() && agent->second.pending == addressee.pending) {
      agent->second.pending = nullptr;
    }
  }
}

}  // namespace tacho::server::ingest
