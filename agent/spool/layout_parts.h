// Cuts a layout that is too wide for one message into layouts that are not.
#pragma once

#include <cstdint>
#include <vector>

#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// A layout may always have one series, however large it is.
struct LayoutLimits {
  uint64_t max_bytes = 0;   // The message that defines the layout has at most so many.
  uint64_t max_series = 0;  // 0: no limit.
};

// Bytes of the message that defines a layout, beyond the layout without its id.
inline constexpr uint64_t kDefinitionOverhead = 32;

inline bool Fits(uint64_t layout_bytes, uint64_t series, const LayoutLimits& limits) {
  return series <= 1 || (layout_bytes + kDefinitionOverhead <= limits.max_bytes &&
                         (limits.max_series == 0 || series <= limits.max_series));
}

// The same series in the same order, without an overlap: the first part has the first columns, and
// so on. Each part has the layout's source. One part if the layout fits.
//
// Where a part ends depends on the series around the cut, not on their number. So a series that
// comes or goes changes one or two parts, and the others stay equal to what they were.
std::vector<v1::Layout> CutLayout(const v1::Layout& layout, const LayoutLimits& limits);

}  // namespace tacho::agent
