// A source that is one function: it fills a sample, which becomes a row of this host.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/sources/rows/cadence.h"
#include "agent/sources/rows/sample.h"
#include "agent/sources/rows/series_rows.h"
#include "agent/sources/rows/source.h"
#include "agent/sources/rows/source_log.h"

namespace tacho::agent {

struct SampledSourceOptions {
  std::string name = {};
  std::string job = {};
  std::string host = {};  // Label of every row.
  absl::Duration interval = absl::Minutes(1);
  log::Log log = {};
};

// A row at each multiple of the interval. A series that was in the last row and is not in this one
// has a stale marker there. One thread.
class SampledSource : public Source {
 public:
  // Adds what it finds. Its status is the source's; what it has added is filed all the same.
  using Take = std::function<absl::Status(Sample* out)>;
  SampledSource(SampledSourceOptions options, Take take);

  absl::string_view name() const override { return options_.name; }
  absl::Time Poll(absl::Time now, RowSink* sink) override;
  absl::Status status() const override { return status_; }

 private:
  const SampledSourceOptions options_;
  const Take take_;
  SourceLog log_;
  Cadence cadence_;
  SeriesRows rows_;
  LayoutBudget budget_;
  absl::Status status_;
};

}  // namespace tacho::agent
