// View.Matrix: one metric of many tasks, hosts or chips as cells of one grid, so that a heat map's
// rows align.
//
//   axis  a column is as wide as
//   step  the steps of all rows are apart, if they are evenly spaced: each has a column then
//   time  one and a half times as far as samples of a row are apart: a column without a sample
//         then means that some are missing
//   both  wider, where that would take more than max_columns
//
// Each row is read once. Before that a look finds where the samples lie: by headers of columns
// along time; along steps by steps without values, but for a metric that skips steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/query/range/range_plan.h"
#include "server/query/read/message_packing.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/view.pb.h"

namespace tacho::server::view {

inline constexpr uint32_t kMaxMatrixColumns = 2'000;
inline constexpr uint32_t kDefaultMatrixColumns = 500;
inline constexpr uint32_t kMaxMatrixRows = 16'384;
// 4 bytes and a bit each are held until all rows are known: 33 MiB. All rows with the default
// number of columns fit.
inline constexpr uint64_t kMaxMatrixCells = uint64_t{8} << 20;
// Several series may make a row, such as those of a task's chips.
inline constexpr uint64_t kMaxMatrixSeries = uint64_t{4} * kMaxMatrixRows;

// Sends the head, then rows in messages of about kPackedMessageBytes. Rows without a sample in the
// range are left out. A metric that the job does not have gives a head without columns.
//   INVALID_ARGUMENT    the text names the field and what was expected.
//   NOT_FOUND           no such job; the text names the nearest names.
//   RESOURCE_EXHAUSTED  too many series, rows or cells; the text says how to narrow.
//   DATA_LOSS           stored bytes are damaged.
//   others              as control.Check() and `send`.
absl::Status Matrix(const storage::Store& store, const v1::MatrixRequest& request,
                    const query::RangeLimits& limits, const query::QueryControl& control,
                    query::Send<v1::MatrixResponse> send);

}  // namespace tacho::server::view
