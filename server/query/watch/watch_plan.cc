#include "server/query/watch/watch_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tacho::server::query {

absl::StatusOr<WatchPlan> MakeWatchPlan(const v1::WatchRequest& request, uint64_t max_series) {
  auto selection = MakeSelection(request.selector());
  if (!selection.ok()) return selection.status();
  WatchPlan plan;
  plan.selection = *std::move(selection);
  if (request.has_begin_unix_ns()) plan.begin_ns = request.begin_unix_ns();
  plan.events = request.events();
  plan.max_series = std::min(
      request.max_series() == 0 ? kDefaultWatchedSeries : request.max_series(), max_series);
  return plan;
}

absl::Status TooManyWatched(const WatchPlan& plan) {
  return absl::ResourceExhaustedError(
      absl::StrCat("more than max_series = ", plan.max_series,
                   " series match: name metrics, add matchers, or raise max_series (up to the "
                   "collector's query.max_series)"));
}

}  // namespace tacho::server::query
