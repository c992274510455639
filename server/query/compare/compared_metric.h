// One metric of several subjects side by side: rows along the axis, differences, summaries.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "server/query/range/pieces.h"
#include "server/query/read/across.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// The samples at one place.
struct ComparedSpread {
  double lowest = 0;  // Over the finite ones; NaN if there is none.
  double highest = 0;
  uint64_t count = 0;
  uint64_t non_finite = 0;
};

// A subject's values along the axis, in columns of equal length.
struct ComparedPlaces {
  std::vector<int64_t> positions;  // Steps, or indexes of buckets of time; ascending, each once.
  std::vector<double> values;      // Across the subject's series.
  // Empty: every place is one sample as it was recorded, whose value is its own sum.
  std::vector<ComparedSpread> spreads;

  size_t size() const { return positions.size(); }
};
// From what a fold returned.
ComparedPlaces AsPlaces(const std::vector<FoldedPlace>& folded);

// The figures of a subject's samples of a metric, at whatever places they are shown.
struct ComparedFigures {
  uint64_t count = 0;
  uint64_t non_finite = 0;
  // Over the finite samples; the extremes are NaN without any.
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  long double sum = 0;
  // Across the series, where the subject begins and ends.
  struct End {
    double value = std::numeric_limits<double>::quiet_NaN();
    int64_t position = 0;
  };
  End first;
  End last;
  // Only counters have them.
  std::optional<double> increase;
  std::optional<double> rate;

  void Add(std::span<const double> samples);
  void Add(const Bucket& bucket);
  double Average() const;  // NaN if no sample is finite.
};

using ComparedValues = ValueSet<v1::ComparedValue>;

// Fills the positions and the columns that are in `values`, without summaries. More than `max_rows`
// distinct positions become buckets of equal width.
void FillComparison(const std::vector<ComparedPlaces>& subjects, uint32_t max_rows,
                    const ComparedValues& values, v1::CompareMetric* metric);

// Fills the summaries of the columns, which are there. `subjects` are the places at which they are
// compared: they must not depend on how many rows are asked for. `average_samples`: the average is
// that of the samples, not that of the places' values.
void FillSummaries(const std::vector<ComparedPlaces>& subjects,
                   const std::vector<ComparedFigures>& figures, bool average_samples,
                   v1::CompareMetric* metric);

}  // namespace tacho::server::query
