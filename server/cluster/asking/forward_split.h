// Query calls about a split job (cluster.split_jobs). All members are asked, each about the part
// that it keeps, and their answers are put together (server/cluster/split). What cannot be put
// together is refused with the reason.
#pragma once

#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/query/query_service.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tacho/v1/view.grpc.pb.h"

namespace tacho::server::cluster {

// Thread-safe. Each function is for calls of which ForwardCalls::AsksParts() is true.
class SplitQuery {
 public:
  // Neither is owned; both must outlive the calls.
  SplitQuery(ForwardCalls* calls, query::QueryService* service)
      : calls_(calls), service_(service) {}

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) const;
  grpc::ServerUnaryReactor* ListMetrics(grpc::CallbackServerContext* context,
                                        const v1::ListMetricsRequest* request,
                                        v1::ListMetricsResponse* response) const;
  grpc::ServerUnaryReactor* LabelValues(grpc::CallbackServerContext* context,
                                        const v1::LabelValuesRequest* request,
                                        v1::LabelValuesResponse* response) const;
  grpc::ServerWriteReactor<v1::ListSeriesResponse>* ListSeries(
      grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) const;
  grpc::ServerWriteReactor<v1::RangeResponse>* Range(grpc::CallbackServerContext* context,
                                                     const v1::RangeRequest* request) const;
  grpc::ServerWriteReactor<v1::IntegrateResponse>* Integrate(
      grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) const;
  grpc::ServerWriteReactor<v1::LatestResponse>* Latest(grpc::CallbackServerContext* context,
                                                       const v1::LatestRequest* request) const;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) const;
  grpc::ServerWriteReactor<v1::ListEventsResponse>* ListEvents(
      grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) const;
  grpc::ServerWriteReactor<v1::ExportResponse>* Export(grpc::CallbackServerContext* context,
                                                       const v1::ExportRequest* request) const;

  // FAILED_PRECONDITION: what is asked would need all rows of the job at one member. `what` begins
  // the sentence.
  static absl::Status NotAcross(absl::string_view what, absl::string_view job);

 private:
  ForwardCalls* const calls_;
  query::QueryService* const service_;
};

}  // namespace tacho::server::cluster
