// A series in the order of its steps. Storage orders by time, and a job that restarts from a
// checkpoint goes through some of its steps again.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {

// Samples of one series that are sorted in memory: 128 MiB of them.
inline constexpr size_t kMaxSortedSamples = size_t{4} << 20;

// What is left of the scan by (step, attempt, time).
//   RESOURCE_EXHAUSTED  more than kMaxSortedSamples; the text says how to narrow.
absl::StatusOr<std::vector<Sample>> SortedBySteps(SeriesScan* scan);

// What is left of the scan with each step once, ascending: of the newest attempt, and of that the
// newest time. Nothing is sorted where steps never fall with time, as within an attempt.
//   RESOURCE_EXHAUSTED  as above.
absl::StatusOr<storage::SampleBlock> NewestOfEachStep(SeriesScan* scan);

// Of each step keeps the newest attempt, and of that the newest time. Needs the order above.
void KeepNewestOfEachStep(std::vector<Sample>* samples);

}  // namespace tacho::server::query
