#include "client/ctl/export/export_source.h"

#include <utility>

#include "client/ctl/text/samples.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

// The most that a collector may allow. Its own limit may be lower, and its error names it.
constexpr uint64_t kMaxSeries = 1'000'000;
constexpr uint64_t kMaxSamples = 100'000'000;

class Reader {
 public:
  Reader(QueryClient& client, const v1::ExportRequest& request,
         const std::function<absl::Status(const v1::ExportResponse&)>& handle)
      : client_(client), request_(request), handle_(handle) {}

  absl::Status Read() {
    bool any = false;
    const absl::Status status =
        client_.Export(request_, [this, &any](const v1::ExportResponse& response) {
          any = true;
          status_ = CheckSamples(response.samples().points());
          return status_.ok() && Hand(response);
        });
    if (!status_.ok()) return status_;
    // An older collector does not have this call.
    return absl::IsUnimplemented(status) && !any ? ReadByPieces() : status;
  }

 private:
  static absl::Status CheckSamples(const v1::Points& points) {
    v1::RangeResponse response;
    // A copy for the check alone: it costs little beside writing the columns as text.
    *response.mutable_points() = points;
    return CheckColumns(response);
  }

  // Uses the calls that every collector has. The result is not of one moment.
  absl::Status ReadByPieces() {
    TACHO_ASSIGN_OR_RETURN(auto job, client_.GetJob(request_.selector().job()));
    v1::ExportResponse response;
    *response.mutable_job() = std::move(job);
    if (!Hand(response)) return status_;
    TACHO_RETURN_IF_ERROR(ReadEvents());
    TACHO_RETURN_IF_ERROR(ReadSamples());
    response.Clear();
    *response.mutable_end() = end_;
    Hand(response);
    return status_;
  }

  bool Hand(const v1::ExportResponse& response) {
    status_ = handle_(response);
    return status_.ok();
  }

  absl::Status ReadEvents() {
    v1::ListEventsRequest request;
    request.set_job(request_.selector().job());
    if (request_.has_time()) *request.mutable_time() = request_.time();
    if (request_.has_steps()) *request.mutable_steps() = request_.steps();
    request.set_attempts(request_.attempts());
    const absl::Status status =
        client_.ListEvents(request, [this](const v1::ListEventsResponse& answer) {
          v1::ExportResponse response;
          for (const v1::RecordedEvent& event : answer.events()) {
            end_.set_events(end_.events() + 1);
            *response.mutable_event() = event;
            if (!Hand(response)) return false;
          }
          return true;
        });
    return status_.ok() ? status : status_;
  }

  absl::Status ReadSamples() {
    v1::RangeRequest request;
    *request.mutable_selector() = request_.selector();
    if (request_.has_time()) *request.mutable_time() = request_.time();
    if (request_.has_steps()) *request.mutable_steps() = request_.steps();
    request.set_attempts(request_.attempts());
    request.set_max_series(kMaxSeries);
    request.set_max_samples(kMaxSamples);
    const absl::Status status = client_.Range(request, [this](const v1::RangeResponse& piece) {
      status_ = CheckColumns(piece);
      return status_.ok() && HandPiece(piece);
    });
    return status_.ok() ? status : status_;
  }

  bool HandPiece(const v1::RangeResponse& piece) {
    v1::ExportResponse response;
    if (piece.has_series()) {
      response.mutable_series()->set_index(piece.series_index());
      *response.mutable_series()->mutable_series() = piece.series();
      end_.set_series(end_.series() + 1);
      if (!Hand(response)) return false;
    }
    if (!piece.has_points()) return true;
    response.mutable_samples()->set_index(piece.series_index());
    *response.mutable_samples()->mutable_points() = piece.points();
    end_.set_samples(end_.samples() + static_cast<uint64_t>(piece.points().values_size()));
    return Hand(response);
  }

  QueryClient& client_;
  const v1::ExportRequest& request_;
  const std::function<absl::Status(const v1::ExportResponse&)>& handle_;
  v1::ExportEnd end_;
  absl::Status status_;
};

}  // namespace

absl::Status ReadExport(QueryClient& client, const v1::ExportRequest& request,
                        const std::function<absl::Status(const v1::ExportResponse&)>& handle) {
  return Reader(client, request, handle).Read();
}

}  // namespace tacho::ctl
