// Reads the series of one metric of one task side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/check.h"
#include "server/query/read/sample.h"
#include "storage/model/series_reader.h"

namespace tacho::server::goodput {

// The samples of one metric of one task, from whatever hosts it ran on, in ascending time.
// One thread at a time; must not outlive the view that its readers are of.
class SampleCursor {
 public:
  SampleCursor() = default;  // At its end.
  // Values are multiplied by `factor`.
  SampleCursor(std::vector<std::unique_ptr<storage::SeriesReader>> readers, double factor);

  // Goes to the first sample, then to the next. Call before anything else.
  absl::Status Next();
  bool at_end() const { return current_ == nullptr; }
  const query::Sample& sample() const {  // Not at the end.
    TACHO_CHECK(!at_end());
    return sample_;
  }

 private:
  struct Source {
    std::unique_ptr<storage::SeriesReader> reader;
    storage::Chunk chunk = {};
    size_t at = 0;
    bool done = false;

    int64_t time_ns() const { return chunk.samples().columns.times[at]; }
  };

  static absl::Status Fill(Source* source);

  std::vector<Source> sources_;
  double factor_ = 1;
  Source* current_ = nullptr;
  query::Sample sample_;
};

}  // namespace tacho::server::goodput
