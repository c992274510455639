// A source that is one function: it fills a sample, which becomes a row of this host.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/host_sample.h"
#include "agent/sources/rows/layout_budget.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/trouble_log.h"

namespace tacho::agent {

struct SampledSourceOptions {
  std::string name = {};
  std::string job = {};
  std::string host = {};  // Label of every row.
  absl::Duration interval = absl::Minutes(1);
  LogCallback log = nullptr;  // May be null.
};

// A row at each multiple of the interval. A series that was in the last row and is not in this one
// has a stale marker there. One thread.
class SampledSource : public Source {
 public:
  // Adds what it finds. Its status is the source's; what it has added is filed all the same.
  using Take = std::function<absl::Status(HostSample* out)>;
  SampledSource(SampledSourceOptions options, Take take);

  absl::string_view name() const override { return options_.name; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  const SampledSourceOptions options_;
  const Take take_;
  TroubleLog log_;
  Cadence cadence_;
  SeriesRows rows_;
  LayoutBudget budget_;
  absl::Status status_;
};

// A series of the entry, as layouts have it.
v1::Layout::Series SeriesOf(const HostSample::Entry& entry);

}  // namespace tacho::agent
