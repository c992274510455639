// A series in the order of its steps. Storage orders by time, and a job that restarts from a
// checkpoint goes through some of its steps again.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {

// The most samples of one series that are sorted in memory: 128 MiB.
inline constexpr size_t kMaxSortedSamples = size_t{4} << 20;

// The rest of the scan, sorted by (step, attempt, time).
//   RESOURCE_EXHAUSTED  more than kMaxSortedSamples; the text says how to narrow.
absl::StatusOr<std::vector<Sample>> SortedBySteps(SeriesScan* scan);

// The rest of the scan with each step once, ascending: the sample of the newest attempt, and within
// the attempt of the newest time. Nothing is sorted where steps never fall with time, as within an
// attempt.
//   RESOURCE_EXHAUSTED  as above.
absl::StatusOr<storage::SampleBlock> NewestOfEachStep(SeriesScan* scan);

// Keeps for each step the sample of the newest attempt, and within the attempt of the newest time.
// `samples` are in the order of SortedBySteps().
void KeepNewestOfEachStep(std::vector<Sample>* samples);

}  // namespace tacho::server::query
