// Events about what is announced to this machine, for it and for the tasks that it concerns.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/notices/notice_book.h"

namespace tacho::agent {

struct HostEventsOptions {
  std::string job = {};   // Under which the machine's events are filed.
  std::string host = {};  // The machine, in every event.
  // Called when something has changed: the tasks that get the event. Null: none do.
  std::function<std::vector<ProcessJob>()> running_tasks = nullptr;
};

// One thread.
class HostEvents {
 public:
  explicit HostEvents(HostEventsOptions options) : options_(std::move(options)) {}

  // Adds to the book one event of the machine, and one of each task that runs on it.
  void Add(absl::Time now, const std::string& kind, const std::string& message,
           const std::map<std::string, std::string>& fields, NoticeBook* book);
  // The end of a poll: the tasks are looked up again for the next one's events.
  void EndPoll() { tasks_.reset(); }

 private:
  const HostEventsOptions options_;
  std::optional<std::vector<ProcessJob>> tasks_;
};

}  // namespace tacho::agent
