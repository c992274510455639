// Works on what the collector asks, one request at a time.
//
// The thread exists while there is a request; an agent that is never asked has none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/stream/request_taker.h"
#include "proto/base/log.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

// One part of a report has at most so many bytes,
inline constexpr size_t kMaxReportPart = 64 << 10;
// and a whole report so many. A request ends after this time, whatever the collector says.
inline constexpr size_t kMaxReport = 4 << 20;
inline constexpr absl::Duration kLongestRequest = absl::Minutes(2);

class AnswerDesk final : public RequestTaker {
 public:
  // Answers a request of one kind; `until` is MonotonicNow()'s. Called on the desk's thread.
  using Answer =
      std::function<v1::AgentFindings(const v1::AgentRequest& request, absl::Time until)>;
  // By kind, as in Hello: "stacks", "profile".
  AnswerDesk(std::map<std::string, Answer> answers, log::Log log);
  // Waits for a request that is worked on.
  ~AnswerDesk() override;

  std::vector<std::string> Kinds() const override;
  void Take(const v1::AgentRequest& request) override ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<v1::AgentReport> NextReport() override ABSL_LOCKS_EXCLUDED(mutex_);
  void StreamEnded() override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetListener(std::function<void()> ready) override ABSL_LOCKS_EXCLUDED(listener_mutex_);

 private:
  void Work(const v1::AgentRequest& request, uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Queue(uint64_t id, v1::AgentFindings findings, size_t max_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellListener() ABSL_LOCKS_EXCLUDED(listener_mutex_);

  const std::map<std::string, Answer> answers_;
  const log::Log log_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;  // Counts streams; what was asked on an earlier one
                                                 // is not answered.
  std::deque<v1::AgentReport> reports_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);

  // Held while the listener is called, so that none is called after SetListener(nullptr).
  absl::Mutex listener_mutex_;
  std::function<void()> ready_ ABSL_GUARDED_BY(listener_mutex_);
};

// Makes the findings at most so many bytes: first without the threads beside the main one, then
// with fewer frames of it, then of fewer tasks. False if something is left out.
bool Shorten(size_t max_bytes, v1::AgentFindings* findings);

}  // namespace tacho::agent
