// Which series make a row of a matrix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::server::view {

struct MatrixRowSource {
  // As the fields of v1::MatrixRow.
  std::optional<uint32_t> task;
  std::string host;
  std::string chip;
  std::string label;
  std::vector<storage::SeriesPtr> members;  // In the order of `series`.
};

// `rows` is MatrixRequest.rows. Ascending by task, host, chip and label; numbers by their value,
// and what is absent first.
//   INVALID_ARGUMENT  `rows` can be no row.
absl::StatusOr<std::vector<MatrixRowSource>> MatrixRowsOf(
    absl::string_view rows, const std::vector<storage::SeriesPtr>& series);

}  // namespace tacho::server::view
