// The data of the answers of Prometheus' HTTP API about names: JSON, as its documentation has it.
// No HTTP.
//
// https://prometheus.io/docs/prometheus/latest/querying/api/ and prometheus/prometheus,
// web/api/v1/api.go. Labels and selection are those of remote read (series_labels.h,
// read_selection.h), so that what is listed here is what a query finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/promread/entry_list.h"
#include "server/promread/explore_request.h"
#include "server/promread/read_selection.h"

namespace tacho::server::promread {

// The most names or values of a list. What comes later in their order is left out with a warning.
inline constexpr size_t kMaxListed = 100'000;
// The most bytes of an answer's data, apart from its last element.
inline constexpr size_t kMaxDataBytes = size_t{32} << 20;
// status/tsdb: the entries of a list, if the request sets no limit, and at most.
inline constexpr uint64_t kDefaultTop = 10;
inline constexpr uint64_t kMaxTop = 10'000;

struct ExploreAnswer {
  std::string data;                   // JSON.
  std::vector<std::string> warnings;  // What the answer leaves out, and why.
};

enum class ListKind : uint8_t {
  kLabelNames,   // ["__name__","host",...]
  kLabelValues,  // ["a","b",...]
  kSeries,       // [{"__name__":"loss","job":"x",...},...]
  // {"loss":[{"type":"gauge","help":"...","unit":"nats"}],...}: a metric has an entry for each
  // definition that differs. A histogram stands under its family, without "_bucket".
  kMetadata,
};

struct ListQuestion {
  ListKind kind = ListKind::kLabelNames;
  std::string label;  // kLabelValues lists its values.
  ExploreRequest request;
};

// An empty list for the answer to a question.
EntryList ListFor(const ListQuestion& question);

// Finds the entries of jobs that `world.rights` include. Without match[], and with one like
// {__name__!=""}, labels and the values of __name__, metric, job, task, host and attempt come from
// the index of each job; else each series that is selected is looked at, max_series of a job at
// most. Statuses are those of SelectSeries() and of storage, and
//   INVALID_ARGUMENT (MALFORMED)  a list of series without match[].
absl::StatusOr<EntryList> FindEntries(const SelectionWorld& world, const ListQuestion& question);

//   RESOURCE_EXHAUSTED (TOO_LARGE)  a list of series has more than max_series. To be called when
//                                   entries of other members have been added.
absl::Status CheckEntries(const SelectionWorld& world, const ListQuestion& question,
                          const EntryList& entries);

ExploreAnswer AnswerOf(const ListQuestion& question, const EntryList& entries);

// {"headStats":{...},"seriesCountByMetricName":[{"name":"loss","value":3},...],...}. Counts stored
// series, so all attempts of a task are one. Lists cover jobs in memory, which a warning says; the
// values of a label are those of the job with the most.
absl::StatusOr<ExploreAnswer> DescribeStore(const SelectionWorld& world,
                                            const ExploreRequest& request);

}  // namespace tacho::server::promread
