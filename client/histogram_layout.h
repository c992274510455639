// How a histogram travels in tacho.v1: one row of a layout that has a series of type HISTOGRAM for
// each bound, with the label le, one for le="+Inf", and the counter <name>_sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::client {

void AddHistogramSeries(absl::string_view name, absl::string_view unit, absl::string_view help,
                        std::span<const double> bounds, v1::Layout* layout);

// A row's values, in that order. `counts` has one for each bucket and one for what is above the
// last bound; in the row each includes those before it.
std::vector<double> HistogramValues(std::span<const uint64_t> counts, double sum);

}  // namespace tacho::client
