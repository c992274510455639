// Says in words which limit was met.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "storage/index/series_limits.h"
#include "storage/model/series.h"

namespace tacho::server::limits {

// Cut to what a person reads and what is cheap to keep, at the beginning of a code point.
inline constexpr size_t kShortTextBytes = 512;
std::string ShortText(std::string text);

// "loss{chip="3"}".
std::string DescribeSeries(const storage::SeriesDefinition& series);

// The number of a limit in a policy.
uint64_t BoundOf(const storage::LimitPolicy& policy, storage::Limit limit, int rule);

// Which limit it is, with its configuration key and number, and how to get below it. `label` is the
// label at fault; empty if none in particular is.
std::string DescribeLimit(const storage::LimitPolicy& policy, const storage::Breach& breach,
                          absl::string_view label);

}  // namespace tacho::server::limits
