// The services Query, View, Marks, AgentRequests and Cluster of one collector, as calls that return
// absl::Status.
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
#include "tacho/v1/agent_requests.pb.h"
#include "tacho/v1/cluster.pb.h"
#include "tacho/v1/query.pb.h"
#include "tacho/v1/view.pb.h"

namespace tacho::ctl {

// watch_call.h
template <typename Response>
class StreamCall;
using WatchCall = StreamCall<v1::WatchResponse>;
using WatchConditionsCall = StreamCall<v1::WatchConditionsResponse>;

// Every call returns the collector's status code and text, or
//   UNAVAILABLE        with reached() false: nobody answers at the address.
//   DEADLINE_EXCEEDED  no answer within the timeout.
//   others             as Channel::status(), which must be OK for a call to be made.
// Not thread-safe.
class QueryClient {
 public:
  explicit QueryClient(ClientOptions options);
  QueryClient(QueryClient&&) noexcept;
  ~QueryClient();

  // Fetches pages until it has `at_most` jobs; 0: all.
  absl::StatusOr<std::vector<v1::Job>> ListJobs(v1::ListJobsRequest request, size_t at_most = 0);
  absl::StatusOr<v1::GetJobResponse> GetJob(const std::string& job);
  absl::StatusOr<v1::LabelValuesResponse> LabelValues(const v1::LabelValuesRequest& request);
  absl::StatusOr<v1::FirstNonFiniteResponse> FirstNonFinite(
      const v1::FirstNonFiniteRequest& request);
  absl::StatusOr<std::vector<v1::Integral>> Integrate(const v1::IntegrateRequest& request);
  absl::StatusOr<v1::GoodputResponse> Goodput(const v1::GoodputRequest& request);
  absl::StatusOr<v1::CostResponse> Cost(const v1::CostRequest& request);
  absl::StatusOr<v1::ForecastResponse> Forecast(const v1::ForecastRequest& request);
  absl::StatusOr<v1::CardinalityResponse> Cardinality(const v1::CardinalityRequest& request);
  absl::StatusOr<v1::ConditionsResponse> Conditions(const v1::ConditionsRequest& request);
  // The conditions of one job, the most severe first. nullopt if nothing judges it or the call
  // fails: for callers that can do without.
  std::optional<std::vector<v1::Condition>> ConditionsOf(const std::string& job);
  absl::StatusOr<v1::FleetResponse> Fleet(const v1::FleetRequest& request);
  // The page as somebody here reaches it, with a slash at its end. Empty: the collector has none,
  // is older, does not know its address, or serves it to its own machine only, which this is not;
  // or the call fails.
  std::string PageUrl();
  // The collector waits for agents as long as the request says; the answer may take as long again
  // as any call's.
  absl::StatusOr<v1::TakeStacksResponse> TakeStacks(const v1::TakeStacksRequest& request);
  absl::StatusOr<v1::TakeProfilesResponse> TakeProfiles(const v1::TakeProfilesRequest& request);
  absl::StatusOr<v1::ChangeMarksResponse> ChangeMarks(const v1::ChangeMarksRequest& request);
  // The members of the collector's cluster; none if it is in no cluster, or is older than clusters.
  absl::StatusOr<v1::GetMembersResponse> GetMembers();

  // Streams: `handle` sees each message as it arrives; it returns false to stop, which is no error.
  template <typename Response>
  using Handler = std::function<bool(const Response&)>;
  absl::Status ListSeries(const v1::ListSeriesRequest& request,
                          const Handler<v1::ListSeriesResponse>& handle);
  // Handles one piece at a time, however messages hold them.
  absl::Status Range(const v1::RangeRequest& request, const Handler<v1::RangeResponse>& handle);
  absl::Status Latest(const v1::LatestRequest& request, const Handler<v1::LatestResponse>& handle);
  absl::Status Export(const v1::ExportRequest& request, const Handler<v1::ExportResponse>& handle);
  absl::Status Compare(const v1::CompareRequest& request,
                       const Handler<v1::CompareResponse>& handle);
  absl::Status ListEvents(const v1::ListEventsRequest& request,
                          const Handler<v1::ListEventsResponse>& handle);

  // The call lasts until it ends or is destroyed; setup() must be OK.
  std::unique_ptr<WatchCall> Watch(const v1::WatchRequest& request);
  std::unique_ptr<WatchConditionsCall> WatchConditions(const v1::WatchConditionsRequest& request);
  // How a watch ended, as a status of the other calls.
  absl::Status EndOf(const WatchCall& call);
  absl::Status EndOf(const WatchConditionsCall& call);

  // Why no call is possible; OK otherwise.
  const absl::Status& setup() const;
  // Whether the last failure came from a collector, not from the connection.
  bool reached() const;
  const std::string& address() const;
  absl::Duration timeout() const;

 private:
  class Calls;  // Keeps gRPC's headers, which take seconds to compile, out of this one.

  std::unique_ptr<Calls> calls_;
};

}  // namespace tacho::ctl
