// The samples of one series that a query asks for, and nothing else.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/query/attempts.h"
#include "server/query/query_control.h"
#include "storage/store.h"

namespace tacho::server {

// One sample, out of its columns.
struct Sample {
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

// One thread at a time. Fails between two blocks with the status of `control`, which must outlive
// it as the store must.
class SeriesScan {
 public:
  SeriesScan(const storage::Store& store, const storage::SeriesPtr& series,
             const storage::ReadOptions& read, const AttemptCondition& attempts,
             const QueryControl& control);

  // Replaces *block with the next samples, at least one; false if there are none left.
  absl::StatusOr<bool> Next(storage::SampleBlock* block);

  // Calls visit(const Sample&) for all that is left.
  template <typename Visit>
  absl::Status ForEach(const Visit& visit) {
    storage::SampleBlock block;
    for (;;) {
      absl::StatusOr<bool> more = Next(&block);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      for (size_t i = 0; i < block.size(); ++i) {
        visit(Sample{block.times[i], block.steps[i], block.attempts[i], block.values[i]});
      }
    }
  }

 private:
  std::unique_ptr<storage::SeriesReader> reader_;
  AttemptCondition attempts_;
  const QueryControl& control_;
};

}  // namespace tacho::server
