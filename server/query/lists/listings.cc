#include "server/query/lists/listings.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "proto/base/status_macros.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {
namespace {

// Series whose newest samples are read between two looks at the query's control.
constexpr size_t kSeriesAtOnce = 1000;

uint64_t SeriesLimit(uint64_t asked, uint64_t most) {
  return std::min(asked == 0 ? kDefaultListedSeries : asked, most);
}

// `newest` of a series if its attempt is allowed, else the newest sample of one that is.
absl::StatusOr<std::optional<storage::LatestSample>> NewestAllowed(
    const storage::Store& store, const storage::SeriesPtr& series,
    std::optional<storage::LatestSample> newest, const AttemptCondition& attempts,
    const QueryControl& control) {
  if (!newest.has_value() || attempts.Allows(newest->attempt)) return newest;
  std::optional<storage::LatestSample> found;
  storage::ReadOptions read;
  read.attempt = attempts.only();
  SeriesScan scan(store.Read(series, read), attempts, control);
  absl::Status status = scan.ForEach([&](const Sample& sample) {
    found =
        storage::LatestSample{series, sample.time_ns, sample.step, sample.attempt, sample.value};
  });
  if (!status.ok()) return status;
  return found;
}

}  // namespace

absl::Status ListSeries(const storage::Store& store, const v1::ListSeriesRequest& request,
                        uint64_t max_series, const QueryControl& control,
                        Send<v1::ListSeriesResponse> send) {
  TACHO_ASSIGN_OR_RETURN(Selection selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(
      auto all, FindSelected(store, selection, SeriesLimit(request.max_series(), max_series)));
  ListingPieces<v1::ListSeriesResponse> pieces(send);
  for (const storage::SeriesPtr& series : all) {
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_ASSIGN_OR_RETURN(bool listed, HasSample(store, series, selection.attempts, control));
    if (!listed) continue;
    v1::SeriesInfo* info = pieces.piece()->add_series();
    ToProto(*series, info);
    if (absl::Status status = pieces.Added(info->ByteSizeLong()); !status.ok()) return status;
  }
  return pieces.Flush();
}

absl::Status Latest(const storage::Store& store, const v1::LatestRequest& request,
                    uint64_t max_series, const QueryControl& control,
                    Send<v1::LatestResponse> send) {
  TACHO_ASSIGN_OR_RETURN(Selection selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(
      auto all, FindSelected(store, selection, SeriesLimit(request.max_series(), max_series)));
  ListingPieces<v1::LatestResponse> pieces(send);
  std::vector<storage::SeriesPtr> chunk;
  std::vector<std::optional<storage::LatestSample>> latest;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % kSeriesAtOnce == 0) {
      TACHO_RETURN_IF_ERROR(control.Check());
      const auto begin = all.begin() + static_cast<ptrdiff_t>(i);
      chunk.assign(begin, begin + static_cast<ptrdiff_t>(std::min(kSeriesAtOnce, all.size() - i)));
      TACHO_ASSIGN_OR_RETURN(auto read, store.LatestOf(chunk));
      latest = std::move(read);
    }
    const storage::SeriesPtr& series = all[i];
    TACHO_ASSIGN_OR_RETURN(auto newest,
                           NewestAllowed(store, series, std::move(latest[i % kSeriesAtOnce]),
                                         selection.attempts, control));
    if (!newest.has_value()) continue;
    v1::LatestSample* sample = pieces.piece()->add_samples();
    ToProto(*series, sample->mutable_series());
    sample->set_time_unix_ns(newest->time_ns);
    if (newest->step != storage::kNoStep) sample->set_step(newest->step);
    sample->set_attempt(newest->attempt);
    sample->set_value(newest->value);
    if (absl::Status status = pieces.Added(sample->ByteSizeLong()); !status.ok()) return status;
  }
  return pieces.Flush();
}

}  // namespace tacho::server::query
