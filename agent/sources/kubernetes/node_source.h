// Watches what Kubernetes says of this machine's node. docs/identity.md says what becomes of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/kubernetes/api_server.h"
#include "agent/sources/kubernetes/node_state.h"
#include "agent/sources/notices/host_events.h"
#include "agent/sources/notices/notice_book.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"

namespace tacho::agent {

struct NodeSourceOptions {
  std::string job = {};   // Under which the machine's rows and events are filed.
  std::string host = {};  // Label of every row.
  absl::Duration interval = absl::Seconds(10);
  // As HostEventsOptions has it.
  std::function<std::vector<ProcessJob>()> running_tasks = nullptr;
  log::Log log = {};
};

// Each change becomes one event for the machine and one for each task that runs on it then. A
// restart of the agent repeats none. It writes a row once a minute and at each change.
//
// It polls, because a watch would take the right to watch all nodes. A service account without the
// right to read the node is no failure of the agent: the log says once what to add, and the source
// asks once a minute whether it was. One thread.
class NodeSource : public Source {
 public:
  static constexpr absl::Duration kSlowInterval =
      absl::Minutes(1);                                         // Between rows that say the same.
  static constexpr absl::Duration kTimeout = absl::Seconds(5);  // For one question.

  NodeSource(NodePlace place, NodeSourceOptions options);

  absl::string_view name() const override { return "node"; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  // Takes what the API server says. Returns whether something has changed.
  bool Look(absl::Time now);
  bool Take(absl::Time now, NodeState state);
  void Fail(absl::Time now, const absl::Status& why);
  void WriteRow(absl::Time now, RowSink* sink);

  const NodePlace place_;
  const NodeSourceOptions options_;
  SourceLog log_;
  Cadence cadence_;
  Cadence slow_{kSlowInterval};
  HostEvents events_;
  SeriesRows rows_;
  std::optional<NoticeBook> book_;  // From the first poll on.
  std::optional<NodeState> state_;  // None while it is not known.
  absl::Time not_before_ = absl::InfinitePast();
  std::string said_;  // The last refusal that was logged.
  absl::Status status_;
};

}  // namespace tacho::agent
