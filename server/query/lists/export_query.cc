#include "server/query/lists/export_query.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/query/lists/job_detail.h"
#include "server/query/range/pieces.h"
#include "server/query/read/selection.h"
#include "server/query/read/series_scan.h"

namespace tacho::server::query {
namespace {

class Exporter {
 public:
  Exporter(storage::JobView* view, Selection selection, const storage::ReadOptions& read,
           uint64_t max_samples, const QueryControl& control, Send<const v1::ExportResponse&> send)
      : view_(view),
        selection_(std::move(selection)),
        read_(read),
        max_samples_(max_samples),
        control_(control),
        send_(send) {}

  absl::Status SendEvents() {
    const auto events = view_->Events(read_.begin_ns, read_.end_ns);
    if (!events.ok()) return events.status();
    for (const storage::Event& event : *events) {
      if (!IsWanted(event)) continue;
      TACHO_RETURN_IF_ERROR(control_.Check());
      v1::ExportResponse response;
      ToProto(event, response.mutable_event());
      TACHO_RETURN_IF_ERROR(send_(response));
      end_.set_events(end_.events() + 1);
    }
    return absl::OkStatus();
  }

  absl::Status SendSeries(const storage::SeriesPtr& series) {
    SeriesScan scan(view_->Read(series, read_), selection_.attempts, control_);
    storage::Chunk chunk;
    bool begun = false;
    for (;;) {
      TACHO_ASSIGN_OR_RETURN(const auto more, scan.Next({}, &chunk));
      if (!more) break;
      if (!std::exchange(begun, true)) {
        v1::ExportResponse response;
        response.mutable_series()->set_index(static_cast<uint32_t>(end_.series()));
        ToProto(*series, response.mutable_series()->mutable_series());
        TACHO_RETURN_IF_ERROR(send_(response));
      }
      TACHO_RETURN_IF_ERROR(SendSamples(chunk.samples()));
    }
    if (begun) end_.set_series(end_.series() + 1);
    return absl::OkStatus();
  }

  absl::Status SendEnd() {
    v1::ExportResponse response;
    *response.mutable_end() = end_;
    return send_(response);
  }

 private:
  bool IsWanted(const storage::Event& event) const {
    const int64_t step = event.step.value_or(storage::kNoStep);
    if (read_.first_step.has_value() && step < *read_.first_step) return false;
    if (read_.last_step.has_value() && step > *read_.last_step) return false;
    return selection_.attempts.AllowsRow(event.source.attempt, step);
  }

  absl::Status SendSamples(const storage::SampleView& samples) {
    for (size_t begin = 0; begin < samples.size(); begin += kSamplesPerPiece) {
      const size_t end = std::min(samples.size(), begin + kSamplesPerPiece);
      end_.set_samples(end_.samples() + end - begin);
      if (end_.samples() > max_samples_) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "more than query.max_samples = ", max_samples_,
            " samples: export a shorter time or step range, fewer metrics or one task at a time"));
      }
      v1::ExportResponse response;
      response.mutable_samples()->set_index(static_cast<uint32_t>(end_.series()));
      FillPoints(samples, begin, end, response.mutable_samples()->mutable_points());
      TACHO_RETURN_IF_ERROR(send_(response));
    }
    return absl::OkStatus();
  }

  storage::JobView* const view_;
  const Selection selection_;
  const storage::ReadOptions read_;
  const uint64_t max_samples_;
  const QueryControl& control_;
  const Send<const v1::ExportResponse&> send_;
  v1::ExportEnd end_;  // Counts what has been sent.
};

}  // namespace

absl::Status Export(const storage::Store& store, const v1::ExportRequest& request,
                    const RangeLimits& limits, absl::Time now, const QueryControl& control,
                    absl::FunctionRef<absl::Status(const v1::ExportResponse&)> send) {
  TACHO_ASSIGN_OR_RETURN(auto selection, MakeSelection(request.selector()));
  TACHO_ASSIGN_OR_RETURN(auto read, ReadOptionsOf(request));
  absl::Status status = ChooseAttempts(store, request.attempts(), &selection);
  if (!status.ok()) return status;
  read.attempt = selection.attempts.only();
  read.read_once = true;
  // The view first: what it shows is in what is described and found afterwards.
  const auto view = store.OpenJobView(request.selector().job());
  v1::GetJobRequest get;
  get.set_job(request.selector().job());
  if (request.selector().has_part()) *get.mutable_part() = request.selector().part();
  v1::ExportResponse job;
  status = GetJob(store, get, now, control, job.mutable_job());
  if (!status.ok()) return status;
  TACHO_ASSIGN_OR_RETURN(const auto all, FindSelected(store, selection, limits.max_series));

  if (status = send(job); !status.ok()) return status;
  Exporter exporter(view.get(), std::move(selection), read, limits.max_samples, control, send);
  if (status = exporter.SendEvents(); !status.ok()) return status;
  for (const storage::SeriesPtr& series : all) {
    if (status = exporter.SendSeries(series); !status.ok()) return status;
  }
  return exporter.SendEnd();
}

}  // namespace tacho::server::query
