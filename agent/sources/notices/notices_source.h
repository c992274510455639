// Watches for what Google Compute Engine announces to this machine: maintenance, and that the
// machine is taken away. docs/identity.md says what becomes of it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/identity/metadata_server.h"
#include "agent/sources/notices/host_events.h"
#include "agent/sources/notices/notice_book.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"

namespace tacho::agent {

struct NoticesOptions {
  std::string job = {};   // Under which the machine's rows and events are filed.
  std::string host = {};  // Label of every row.
  absl::Duration interval = absl::Seconds(5);
  // Called when something has changed: the tasks that get the event.
  std::function<std::vector<ProcessJob>()> running_tasks = nullptr;
  log::Log log = {};
};

// Each change becomes one event for the machine and one for each task that runs on it then, never
// repeated, also not over a restart of the agent. A row says what holds each minute, and at a
// change.
//
// It asks again and again rather than once with wait_for_change: an answer is then never older than
// the interval, a server that has forgotten a waiting client is noticed, and the agent can end. One
// thread.
class NoticesSource : public Source {
 public:
  // Between questions for planned maintenance, and between rows that say the same.
  static constexpr absl::Duration kSlowInterval = absl::Minutes(1);

  NoticesSource(MetadataServer server, NoticesOptions options);

  absl::string_view name() const override { return "notices"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  struct Notice;

  // The server's answer now, none if it does not know; status_ if it cannot be asked.
  std::optional<std::string> Ask(const char* path);
  void LookAt(absl::Time now, const Notice& notice);
  void LookAtPlans(absl::Time now);
  void Tell(absl::Time now, const std::string& kind, const std::string& message,
            const std::map<std::string, std::string>& fields);
  void WriteRow(absl::Time now, RowSink* sink);

  const MetadataServer server_;
  const NoticesOptions options_;
  SourceLog log_;
  Cadence cadence_;
  Cadence slow_{kSlowInterval};
  HostEvents events_;
  SeriesRows rows_;
  std::optional<NoticeBook> book_;       // From the first poll on.
  std::map<std::string, bool> told_of_;  // Paths the server knows: whether it announces.
  bool changed_ = false;                 // In this poll.
  absl::Status status_;
};

}  // namespace tacho::agent
