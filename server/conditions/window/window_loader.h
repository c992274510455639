// Fills a job's window from the store: after a start, and where changes were missed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/conditions/window/window_builder.h"
#include "storage/store.h"

namespace tacho::server::conditions {

struct LoadSpan {
  int64_t now_ns = 0;
  // Rows since then, of all tasks, chips and hosts.
  int64_t since_ns = 0;
  // Of the lowest task since then, as its curve is that of the job. Not after since_ns.
  int64_t leader_since_ns = 0;
};

// What of the last hour, or of the last ten minutes of a job of many tasks, was stored; of its
// lowest task the last day.
LoadSpan SpanAfterStart(int64_t now_ns, uint32_t tasks);

// Adds the rows and events of the job's newest attempt, and what it holds of chips and hosts. What
// is in the window stays.
//   as Store::FindSeries() and SeriesReader::Next(); what was read until then is in the window.
absl::Status LoadWindow(const storage::Store& store, const std::string& job, const LoadSpan& span,
                        WindowBuilder* builder);

}  // namespace tacho::server::conditions
