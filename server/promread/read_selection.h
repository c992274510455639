// Which stored series a query of remote read selects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/promread/read_request.h"
#include "server/promread/series_labels.h"
#include "server/query/read/query_control.h"
#include "server/security/rights.h"
#include "storage/store.h"

namespace tacho::server::promread {

// The most series of a query: all their labels are held, because they are sent in their order. That
// is about 50 MB.
inline constexpr uint64_t kMaxReadSeries = 100'000;

struct SelectedSeries {
  storage::SeriesPtr series;
  uint32_t attempt = 0;
  LabelList labels;
};

struct SelectionWorld {
  const storage::Store& store;
  const security::Rights& rights;
  const query::QueryControl& control;
  uint64_t max_series = kMaxReadSeries;
};

// The series of jobs that `rights` include, in the order of their labels. Looks only at jobs and
// attempts with rows in the query's time; a series may have no sample there all the same, and
// counts.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more than max_series match, or more of one job have to be
//                                   looked at; the text says how to narrow.
//   others                          as QueryControl::Check() and as storage has it.
absl::StatusOr<std::vector<SelectedSeries>> SelectSeries(const SelectionWorld& world,
                                                         const ReadQuery& query);

}  // namespace tacho::server::promread
