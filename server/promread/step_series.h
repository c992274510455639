// Steps as a series of their own, so that PromQL can join on them:
//
//   tacho_step{attempt="0",host="h1",job="x",task="3"}
//
// It has a sample at each time at which the task recorded a row with a step, and its value is that
// step. Nothing of it is stored: it is made of the steps that the task's series have. So it costs
// reading these, and only selectors that name it get it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/promread/read_selection.h"
#include "server/promread/read_time.h"
#include "storage/index/matcher.h"

namespace tacho::server::promread {

inline constexpr absl::string_view kStepMetric = "tacho_step";
inline constexpr absl::string_view kStepHelp = "Step of the rows that the task recorded.";

// Rows of one task and one day are held, 16 bytes each: 11 a second for all of a day.
inline constexpr size_t kMaxStepRowsOfDay = 1'000'000;

// Whether matchers on the name take kStepMetric, and one of them names it: by being equal to it, or
// as a regular expression with "tacho_" in it. {job="x"} and {__name__=~".+"} do not ask for it.
bool AsksForSteps(const std::vector<storage::Matcher>& matchers);

// Whether any row of the job has a step.
bool HasSteps(const storage::Store& store, const std::string& job);

// One for each of these attempts, and each task and host of the job that has steps. Matchers on
// other labels than the name decide.
absl::Status VisitStepSeries(const SelectionWorld& world, const ReadQuery& query,
                             const std::string& job, const std::vector<uint32_t>& attempts,
                             absl::FunctionRef<absl::Status(SelectedSeries)> visit);

// The rows with steps of a series that has `steps`: ascending in (time, step), each once. Reads all
// series of the task, a day at a time.
//   RESOURCE_EXHAUSTED (TOO_LARGE)  more than kMaxStepRowsOfDay; or these series have more than
//                                   `max_samples` samples, or are more than world.max_series.
//   others                          as `visit`, QueryControl::Check() and storage have it.
absl::Status VisitSteps(const SelectionWorld& world, const SelectedSeries& one,
                        const TimeSpan& span, uint64_t max_samples,
                        absl::FunctionRef<absl::Status(int64_t time_ns, int64_t step)> visit);

}  // namespace tacho::server::promread
