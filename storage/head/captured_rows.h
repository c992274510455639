// Open rows as they were at one moment: of some series, or of a whole job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/head/open_frame.h"
#include "storage/head/row_block.h"
#include "storage/model/series.h"

namespace tacho::storage {

// The rows of one layout.
struct CapturedFrame {
  std::shared_ptr<const OpenFrame> frame;  // For what never changes of it.
  OpenFrame::AllRows rows;
};

// One thread at a time.
class CapturedRows {
 public:
  void Add(SeriesId series, std::vector<HeadColumn> pieces);
  void Add(std::vector<CapturedFrame> frames);

  // The open rows of a series, one piece a layout and sealing state, ascending in position. Valid
  // until the next call.
  std::span<const HeadColumn> Find(const Series& series);

 private:
  absl::flat_hash_map<SeriesId, std::vector<HeadColumn>> by_series_;
  // The catalogue of a job may leave memory and come back, so a source is found by what it says.
  absl::flat_hash_map<std::pair<std::optional<uint32_t>, std::string>, std::vector<CapturedFrame>>
      by_task_and_host_;
  std::vector<HeadColumn> found_;  // Columns of frames.
};

}  // namespace tacho::storage
