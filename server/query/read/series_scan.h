// The samples of one series that a query asks for, and nothing else.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/status_macros.h"
#include "server/query/read/attempts.h"
#include "server/query/read/counter.h"
#include "server/query/read/query_control.h"
#include "server/query/read/sample.h"
#include "storage/store.h"

namespace tacho::server::query {

// One thread at a time. Fails between two blocks with the status of `control`, which must outlive
// it, as what the reader reads must. With a counter function, samples are what it makes of them.
class SeriesScan {
 public:
  SeriesScan(std::unique_ptr<storage::SeriesReader> reader, const AttemptCondition& attempts,
             const QueryControl& control,
             v1::CounterFunction counter = v1::COUNTER_FUNCTION_UNSPECIFIED);

  // Replaces *block with the next samples, at least one; false if there are none left.
  absl::StatusOr<bool> Next(storage::SampleBlock* block);

  // As storage::SeriesReader::NextSummary(); a summary is of allowed samples only.
  absl::StatusOr<bool> NextSummary(absl::FunctionRef<bool(const storage::SampleSummary&)> fits,
                                   storage::SampleSummary* summary);

  // As storage::SeriesReader::NextView(), of allowed samples only. Without one *view is empty.
  absl::StatusOr<bool> NextView(storage::SampleView* view);

  // As storage::SeriesReader::NextBounds(), of allowed samples only.
  absl::StatusOr<bool> NextBounds(storage::SampleBounds* bounds);
  // Calls visit(first_ns, last_ns) for pieces of what is left, of which nothing lies outside of
  // them. *block is only room to work in.
  absl::Status ForEachBounds(absl::FunctionRef<void(int64_t, int64_t)> visit,
                             storage::SampleBlock* block);

  // Calls visit(const Sample&) for all that is left.
  template <typename Visit>
  absl::Status ForEach(const Visit& visit) {
    storage::SampleBlock block;
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(bool more, Next(&block));
      if (!more) return absl::OkStatus();
      for (size_t i = 0; i < block.size(); ++i) visit(SampleOf(block, i));
    }
  }

  // Calls visit_block(const storage::SampleBlock&) for all that is left, but visit_summary() for
  // what the store can summarise in a way that `fits`.
  template <typename Fits, typename VisitSummary, typename VisitBlock>
  absl::Status ForEachBlock(const Fits& fits, const VisitSummary& visit_summary,
                            const VisitBlock& visit_block) {
    storage::SampleBlock block;
    return ForEachSummary(fits, visit_summary, [&]() -> absl::StatusOr<bool> {
      absl::StatusOr<bool> more = Next(&block);
      if (more.ok() && *more) visit_block(block);
      return more;
    });
  }

  // The same with visit_columns(const storage::SampleColumns&), for who does not ask for attempts:
  // samples are not copied where the store holds them. *block is only room to work in.
  template <typename Fits, typename VisitSummary, typename VisitColumns>
  absl::Status ForEachColumns(const Fits& fits, const VisitSummary& visit_summary,
                              const VisitColumns& visit_columns, storage::SampleBlock* block) {
    storage::SampleView view;
    return ForEachSummary(fits, visit_summary, [&]() -> absl::StatusOr<bool> {
      absl::StatusOr<bool> more = NextView(&view);
      if (more.ok() && *more) {
        visit_columns(view.columns);
        return true;
      }
      if (more.ok()) more = Next(block);
      if (more.ok() && *more) visit_columns(block->columns());
      return more;
    });
  }

 private:
  // Calls visit_next(), which visits some of what comes next or returns false at the end, for what
  // is not summarised.
  template <typename Fits, typename VisitSummary, typename VisitNext>
  absl::Status ForEachSummary(const Fits& fits, const VisitSummary& visit_summary,
                              const VisitNext& visit_next) {
    storage::SampleSummary summary;
    for (;;) {
      absl::StatusOr<bool> more = NextSummary(fits, &summary);
      if (!more.ok()) return more.status();
      if (*more) {
        visit_summary(summary);
        continue;
      }
      more = visit_next();
      if (!more.ok() || !*more) return more.status();
    }
  }

  // Looks at the control where there was more; where there was not, Next() follows, which does.
  absl::StatusOr<bool> Checked(absl::StatusOr<bool> more) const;

  std::unique_ptr<storage::SeriesReader> reader_;
  AttemptCondition attempts_;
  const QueryControl& control_;
  std::optional<CounterGrowth> growth_;
};

// Whether a series has a sample that is allowed; without a condition every series counts as having
// one. Reads it up to there.
absl::StatusOr<bool> HasSample(const storage::Store& store, const storage::SeriesPtr& series,
                               const AttemptCondition& attempts, const QueryControl& control);

}  // namespace tacho::server::query
