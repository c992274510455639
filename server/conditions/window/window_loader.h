// Fills a job's window from the store: after a start, and after missed changes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/conditions/window/window_builder.h"
#include "storage/store.h"

namespace tacho::server::conditions {

struct LoadSpan {
  // Rows of all tasks, chips and hosts since this time.
  int64_t since_ns = 0;
  // Rows of the lowest task since this time, because its curve is that of the job. Not after
  // since_ns.
  int64_t leader_since_ns = 0;
};

// The last hour, or the last ten minutes of a job with many tasks; the last day of its lowest task.
LoadSpan SpanAfterStart(int64_t now_ns, uint32_t tasks);

// Adds the rows and events of the job's newest attempt, and its rows of chips and hosts, to what
// the window holds. Fails as Store::FindSeries() and SeriesReader::Next() do; the window then has
// what was read before.
absl::Status LoadWindow(const storage::Store& store, const std::string& job, const LoadSpan& span,
                        WindowBuilder* builder);

}  // namespace tacho::server::conditions
