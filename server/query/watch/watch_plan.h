// A WatchRequest, checked, with every default filled in.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "server/query/read/selection.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

inline constexpr uint64_t kDefaultWatchedSeries = 10'000;

struct WatchPlan {
  Selection selection;
  std::optional<int64_t> begin_ns;  // History from there on; nullopt: none.
  bool events = false;
  uint64_t max_series = kDefaultWatchedSeries;
};

// `max_series` is what the collector's configuration allows.
//   INVALID_ARGUMENT  the text names the field.
absl::StatusOr<WatchPlan> MakeWatchPlan(const v1::WatchRequest& request, uint64_t max_series);

// RESOURCE_EXHAUSTED: more series match than the plan allows.
absl::Status TooManyWatched(const WatchPlan& plan);

}  // namespace tacho::server::query
