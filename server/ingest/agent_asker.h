// Asks agents for something over their streams, and waits for the reports.
//
//   Ask() ─▶ Send of each stream ─▶ agent ─▶ Heard(), part by part ─▶ Ask() returns
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::server::ingest {

// Bytes of all reports to one question, and of the report of one agent. The share of an agent is
// the first, divided by their number, within the other two.
inline constexpr uint64_t kMaxAskedBytes = 64u << 20;
inline constexpr uint64_t kMaxReportBytes = 4u << 20;
inline constexpr uint64_t kMinReportBytes = 64u << 10;

// Thread-safe. An agent is asked for one thing at a time.
class AgentAsker {
 public:
  // Gets a request onto a stream. Called with no lock held.
  using Send = std::function<void(v1::AgentRequest)>;

  // A stream that says which kinds it answers. It is asked until Leave().
  void Join(uint64_t stream, std::set<std::string> kinds, Send send) ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream speaks for a host. At most kMaxHostsOfStream are remembered.
  void Serves(uint64_t stream, absl::string_view host) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing happens if it had not joined.
  void Leave(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Every question fails from now on, with UNAVAILABLE.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  // A part of a report. One that nobody waits for is dropped, as is what an agent sends beyond the
  // limits: its report then counts as damaged.
  void Heard(uint64_t stream, const v1::AgentReport& untrusted) ABSL_LOCKS_EXCLUDED(mutex_);

  // The answers, by host.
  //   NOT_FOUND            no agent is connected that speaks for the host.
  //   UNIMPLEMENTED        its agent does not answer this kind: it is older.
  //   RESOURCE_EXHAUSTED   its agent is asked for another thing at the moment.
  //   DEADLINE_EXCEEDED    it did not answer in time.
  //   UNAVAILABLE          its stream ended first.
  //   FAILED_PRECONDITION  it refuses; the text is its reason.
  //   DATA_LOSS            its report is damaged or too long.
  using Findings = std::shared_ptr<const v1::AgentFindings>;
  using Answers = std::map<std::string, absl::StatusOr<Findings>>;
  // Asks the agents of `hosts`, and blocks until all have answered or `timeout` is over. An agent
  // that speaks for several of them is asked once. `request` needs no id, deadline or bytes.
  Answers Ask(const std::set<std::string>& hosts, const std::string& kind,
              const v1::AgentRequest& request, absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

  static constexpr size_t kMaxHostsOfStream = 1024;

 private:
  // A question to one agent.
  struct Pending {
    uint64_t id = 0;
    uint64_t max_bytes = 0;
    uint32_t parts = 0;
    std::string data;
    bool settled = false;
    absl::Status failure;  // OK: `data` is the whole report.
  };
  struct Agent {
    std::set<std::string> kinds;
    std::set<std::string, std::less<>> hosts;
    std::shared_ptr<const Send> send;
    std::shared_ptr<Pending> pending;  // Null: it is asked for nothing.
  };
  static void Fail(absl::Status failure, Agent* agent);
  // The agents to ask, with the hosts that each answers for.
  struct Question;

  Question Begin(const std::set<std::string>& hosts, const std::string& kind, Answers* answers)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for all of it. Afterwards nobody else touches what is pending.
  void Settle(const Question& question, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Agent> agents_ ABSL_GUARDED_BY(mutex_);  // By stream.
};

}  // namespace tacho::server::ingest
