// The newest sample of a series without decoding a value: a column's header has its last one.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "storage/columns/stored_view.h"
#include "storage/model/latest.h"

namespace tacho::storage {

// `newest_ns`: no sample of the series is newer. Nullopt where headers leave it open: rows that are
// not sealed, two columns that end at the same time, a last row without a value, none on that day.
//   DATA_LOSS  a column is damaged.
absl::StatusOr<std::optional<LatestSample>> LatestOfHeaders(StoredView* view,
                                                            const SeriesPtr& series,
                                                            int64_t newest_ns);

}  // namespace tacho::storage
