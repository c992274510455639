// A layout after its texts have been looked at: the series that keep the rules on names, labels and
// texts (proto/tacho/v1/types.proto), and what is wrong with the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/model/series.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::server::ingest {

// Labels of one series, whatever limits.labels_per_series says.
inline constexpr int kMaxLabels = 64;

struct AdmittedLayout {
  uint32_t width = 0;                    // Columns as the agent sends them.
  storage::LayoutDefinition definition;  // Of the columns that keep the rules.
  // Where each of those stands in what the agent sends; empty if all keep the rules.
  std::vector<uint32_t> columns;

  // Columns that do not, and the first of them.
  uint32_t invalid = 0;
  std::string invalid_example;  // As metric{labels}.
  std::string invalid_problem;  // "layout.series[3].labels.chip: must not be empty".

  // The next column; in ascending order.
  void Add(uint32_t column, const v1::Layout::Series& untrusted);
};

}  // namespace tacho::server::ingest
