// Which stored series a query of remote read selects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/membership.h"
#include "server/promread/read_request.h"
#include "server/promread/series_labels.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"

namespace tacho::server::promread {

// The most series of a query: all their labels are held, because they are sent in their order. That
// is about 50 MB.
inline constexpr uint64_t kMaxReadSeries = 100'000;

// Whose steps a series has (step_series.h).
struct StepSource {
  std::string job;
  std::optional<uint32_t> task;
  std::string host;
};

struct SelectedSeries {
  storage::SeriesPtr series;  // Null if it has steps.
  uint32_t attempt = 0;
  LabelList labels;
  std::optional<StepSource> steps;
};

struct SelectionWorld {
  const storage::Store& store;
  const security::Rights& rights;
  const query::QueryControl& control;
  uint64_t max_series = kMaxReadSeries;
  // Copies of what other members keep are left out. Null: there is no cluster. Not owned.
  const cluster::Membership* membership = nullptr;
};

// The series of jobs that `rights` include, in the order of their labels. Looks only at jobs and
// attempts with rows in the query's time; a series may have no sample there all the same, and
// counts.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more than max_series match, or more of one job have to be
//                                   looked at; the text says how to narrow.
//   others                          as QueryControl::Check() and as storage has it.
absl::StatusOr<std::vector<SelectedSeries>> SelectSeries(const SelectionWorld& world,
                                                         const ReadQuery& query);

// The same series, one after the other and in no order, until `visit` fails: nothing is held. Here
// max_series bounds those of one job.
absl::Status VisitSeries(const SelectionWorld& world, const ReadQuery& query,
                         absl::FunctionRef<absl::Status(SelectedSeries)> visit);

// RESOURCE_EXHAUSTED (TOO_LARGE), which says how to narrow a query of more than `limit` series.
absl::Status TooManySeries(uint64_t limit);

// The jobs that `rights` include and that may have rows in the query's time, by name. Matchers on
// other labels than "job" are not looked at.
std::vector<std::string> SelectedJobs(const SelectionWorld& world, const ReadQuery& query);

// The attempts of a job with rows in the query's time, ascending; none if there is no such job.
absl::StatusOr<std::vector<uint32_t>> SelectedAttempts(const SelectionWorld& world,
                                                       const ReadQuery& query,
                                                       const std::string& job);

}  // namespace tacho::server::promread
