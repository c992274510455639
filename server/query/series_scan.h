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
// it, as what the reader reads must.
class SeriesScan {
 public:
  SeriesScan(std::unique_ptr<storage::SeriesReader> reader, const AttemptCondition& attempts,
             const QueryControl& control);

  // Replaces *block with the next samples, at least one; false if there are none left.
  absl::StatusOr<bool> Next(storage::SampleBlock* block);

  // As storage::SeriesReader::NextSummary().
  absl::StatusOr<bool> NextSummary(absl::FunctionRef<bool(const storage::SampleSummary&)> fits,
                                   storage::SampleSummary* summary);

  // Calls visit(const Sample&) for all that is left.
  template <typename Visit>
  absl::Status ForEach(const Visit& visit) {
    storage::SampleBlock block;
    for (;;) {
      absl::StatusOr<bool> more = Next(&block);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      for (size_t i = 0; i < block.size(); ++i) visit(SampleOf(block, i));
    }
  }

  // Calls visit_block(const storage::SampleBlock&) for all that is left, but visit_summary() for
  // what the store can summarise in a way that `fits`.
  template <typename Fits, typename VisitSummary, typename VisitBlock>
  absl::Status ForEachBlock(const Fits& fits, const VisitSummary& visit_summary,
                            const VisitBlock& visit_block) {
    storage::SampleBlock block;
    storage::SampleSummary summary;
    for (;;) {
      absl::StatusOr<bool> more = NextSummary(fits, &summary);
      if (!more.ok()) return more.status();
      if (*more) {
        visit_summary(summary);
        continue;
      }
      more = Next(&block);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      visit_block(block);
    }
  }

 private:
  static Sample SampleOf(const storage::SampleBlock& block, size_t i) {
    return {block.times[i], block.steps[i], block.attempts[i], block.values[i]};
  }

  std::unique_ptr<storage::SeriesReader> reader_;
  AttemptCondition attempts_;
  const QueryControl& control_;
};

}  // namespace tacho::server
