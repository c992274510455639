#include "server/query/watch/watch_history.h"

#include <algorithm>
#include <utility>

#include "proto/base/status_macros.h"
#include "server/query/range/pieces.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {
namespace {

using Send = absl::FunctionRef<absl::Status(const v1::WatchResponse&)>;

absl::Status SendSeries(const storage::SeriesPtr& series, SeriesScan scan, Send send,
                        SeriesNumbers* numbers) {
  storage::Chunk chunk;
  for (;;) {
    TACHO_ASSIGN_OR_RETURN(const auto more, scan.Next({}, &chunk));
    if (!more) return absl::OkStatus();
    const storage::SampleView& samples = chunk.samples();
    const SeriesNumbers::Number number = numbers->Of(series->id);
    v1::WatchResponse response;
    if (number.is_new) {
      FillSeries(*series, number.index, &response);
      if (absl::Status status = send(response); !status.ok()) return status;
    }
    for (size_t begin = 0; begin < samples.size(); begin += kSamplesPerPiece) {
      const size_t end = std::min(samples.size(), begin + kSamplesPerPiece);
      response.Clear();
      response.mutable_samples()->set_index(number.index);
      FillPoints(samples, begin, end, response.mutable_samples()->mutable_points());
      if (absl::Status status = send(response); !status.ok()) return status;
    }
  }
}

}  // namespace

absl::Status SendHistory(const storage::Store& store, const WatchPlan& plan, storage::JobView* view,
                         const QueryControl& control, Send send, SeriesNumbers* numbers) {
  const auto series = store.FindSeries(plan.selection.selector, plan.max_series);
  if (absl::IsResourceExhausted(series.status())) return TooManyWatched(plan);
  if (!series.ok()) return series.status();
  if (view == nullptr) return absl::OkStatus();
  if (plan.events) {
    TACHO_ASSIGN_OR_RETURN(const auto events, view->Events(*plan.begin_ns, INT64_MAX));
    for (const storage::Event& event : events) {
      v1::WatchResponse response;
      ToProto(event, response.mutable_event());
      if (absl::Status status = send(response); !status.ok()) return status;
    }
  }
  storage::ReadOptions read;
  read.begin_ns = *plan.begin_ns;
  read.attempt = plan.selection.attempts.only();
  for (const storage::SeriesPtr& one : *series) {
    SeriesScan scan(view->Read(one, read), plan.selection.attempts, control);
    absl::Status status = SendSeries(one, std::move(scan), send, numbers);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace tacho::server::query
