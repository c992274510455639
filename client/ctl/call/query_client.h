// The Query service of one collector, as calls that return absl::Status.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/call/channel.h"
#include "client/ctl/call/watch_call.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::ctl {

// Whether a call's end came from a collector rather than from the way there.
bool CameFromPeer(const grpc::Status& status, grpc::Channel* channel);

// Every call returns the collector's status code and text, or
//   UNAVAILABLE        with reached() false: nobody answers at the address.
//   DEADLINE_EXCEEDED  no answer within the timeout.
//   others             as Channel::status(), which must be OK for a call to be made.
// Not thread-safe.
class QueryClient {
 public:
  explicit QueryClient(ClientOptions options);

  // Pages are fetched until `at_most` jobs are there; 0 is all.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(v1::ListJobsRequest request, size_t at_most = 0);
  absl::StatusOr<v1::GetJobResponse> GetJob(const std::string& job);
  absl::StatusOr<v1::LabelValuesResponse> LabelValues(const v1::LabelValuesRequest& request);
  absl::StatusOr<v1::FirstNonFiniteResponse> FirstNonFinite(
      const v1::FirstNonFiniteRequest& request);
  absl::StatusOr<v1::GoodputResponse> Goodput(const v1::GoodputRequest& request);
  absl::StatusOr<v1::CardinalityResponse> Cardinality(const v1::CardinalityRequest& request);
  absl::StatusOr<v1::ConditionsResponse> Conditions(const v1::ConditionsRequest& request);
  // Of one job, the most severe first; nullopt if it is not judged or the collector cannot say:
  // for those who have more to show.
  std::optional<std::vector<v1::Condition>> ConditionsOf(const std::string& job);

  // Streams: `handle` sees each message as it arrives; it returns false to stop, which is no error.
  template <typename Response>
  using Handler = std::function<bool(const Response&)>;
  absl::Status ListSeries(const v1::ListSeriesRequest& request,
                          const Handler<v1::ListSeriesResponse>& handle);
  // One piece at a time, whatever messages they share.
  absl::Status Range(const v1::RangeRequest& request, const Handler<v1::RangeResponse>& handle);
  absl::Status Latest(const v1::LatestRequest& request, const Handler<v1::LatestResponse>& handle);
  absl::Status Export(const v1::ExportRequest& request, const Handler<v1::ExportResponse>& handle);
  absl::Status Compare(const v1::CompareRequest& request,
                       const Handler<v1::CompareResponse>& handle);
  absl::Status ListEvents(const v1::ListEventsRequest& request,
                          const Handler<v1::ListEventsResponse>& handle);

  // Until it ends or is destroyed, however long that takes; setup() must be OK.
  std::unique_ptr<WatchCall> Watch(const v1::WatchRequest& request);
  std::unique_ptr<WatchConditionsCall> WatchConditions(const v1::WatchConditionsRequest& request);
  // How it ended, as the other calls say it.
  template <typename Response>
  absl::Status EndOf(const StreamCall<Response>& call) {
    return FromGrpc(call.status());
  }

  // Why no call can be made; OK else.
  const absl::Status& setup() const { return channel_.status(); }
  // Whether the last failure came from a collector rather than from the way there.
  bool reached() const { return reached_; }
  const std::string& address() const { return options_.address; }
  absl::Duration timeout() const { return options_.timeout; }

 private:
  // Of a call without a stream.
  void Prepare(grpc::ClientContext* context) const;
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Query::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                const Request& request);
  absl::Status FromGrpc(const grpc::Status& status);
  template <typename Response, typename Start>
  absl::Status ReadStream(const Start& start, const Handler<Response>& handle);

  const ClientOptions options_;
  const Channel channel_;
  std::unique_ptr<v1::Query::Stub> stub_;
  bool reached_ = false;
};

}  // namespace tacho::ctl
