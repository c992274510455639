// The services of a collector in a cluster: each stands in front of the one that answers from what
// this collector keeps, and passes calls about other jobs on to the members that keep them.
//
//   names one job          the member that keeps it answers: whole, or as a stream
//   names a split job      all members answer, each about its part (forward_split.h), or the call
//                          is refused
//   asks for several jobs  all members answer, and their answers are merged
//   compares jobs          one member asks the owner of each for its places
//   names none             answered here
#pragma once

#include <functional>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "grpcpp/server_builder.h"
#include "server/cluster/asking/forward_calls.h"
#include "server/cluster/asking/forward_split.h"
#include "server/cluster/asking/forward_tensorboard.h"
#include "server/query/compare/remote_subject.h"
#include "tacho/v1/agent_requests.grpc.pb.h"
#include "tacho/v1/marks.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tacho/v1/view.grpc.pb.h"

namespace tacho::server::cluster {

// All of this file are thread-safe. Neither `calls` nor `here` is owned; both must outlive the
// service.

class ForwardedQuery final : public v1::Query::CallbackService {
 public:
  using Here = v1::Query::CallbackService;
  // Compares jobs of which some are kept elsewhere, as query::QueryService::CompareAcross().
  using CompareAcross = std::function<grpc::ServerWriteReactor<v1::CompareResponse>*(
      grpc::CallbackServerContext* context, const v1::CompareRequest* request,
      query::SubjectsElsewhere elsewhere)>;
  // `service` is what stands behind `here`.
  ForwardedQuery(ForwardCalls* calls, Here* here, query::QueryService* service,
                 CompareAcross compare_across)
      : calls_(calls),
        here_(here),
        split_(calls, service),
        compare_across_(std::move(compare_across)) {}

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* ListMetrics(grpc::CallbackServerContext* context,
                                        const v1::ListMetricsRequest* request,
                                        v1::ListMetricsResponse* response) override;
  grpc::ServerUnaryReactor* LabelValues(grpc::CallbackServerContext* context,
                                        const v1::LabelValuesRequest* request,
                                        v1::LabelValuesResponse* response) override;
  grpc::ServerUnaryReactor* Cardinality(grpc::CallbackServerContext* context,
                                        const v1::CardinalityRequest* request,
                                        v1::CardinalityResponse* response) override;
  grpc::ServerUnaryReactor* Goodput(grpc::CallbackServerContext* context,
                                    const v1::GoodputRequest* request,
                                    v1::GoodputResponse* response) override;
  grpc::ServerUnaryReactor* Cost(grpc::CallbackServerContext* context,
                                 const v1::CostRequest* request,
                                 v1::CostResponse* response) override;
  grpc::ServerUnaryReactor* Forecast(grpc::CallbackServerContext* context,
                                     const v1::ForecastRequest* request,
                                     v1::ForecastResponse* response) override;
  grpc::ServerUnaryReactor* FirstNonFinite(grpc::CallbackServerContext* context,
                                           const v1::FirstNonFiniteRequest* request,
                                           v1::FirstNonFiniteResponse* response) override;
  grpc::ServerUnaryReactor* Conditions(grpc::CallbackServerContext* context,
                                       const v1::ConditionsRequest* request,
                                       v1::ConditionsResponse* response) override;
  grpc::ServerWriteReactor<v1::ListSeriesResponse>* ListSeries(
      grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) override;
  grpc::ServerWriteReactor<v1::RangeResponse>* Range(grpc::CallbackServerContext* context,
                                                     const v1::RangeRequest* request) override;
  grpc::ServerWriteReactor<v1::IntegrateResponse>* Integrate(
      grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) override;
  grpc::ServerWriteReactor<v1::LatestResponse>* Latest(grpc::CallbackServerContext* context,
                                                       const v1::LatestRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchResponse>* Watch(grpc::CallbackServerContext* context,
                                                     const v1::WatchRequest* request) override;
  // If several members keep the subjects, this one compares them, and asks the others for places.
  grpc::ServerWriteReactor<v1::CompareResponse>* Compare(
      grpc::CallbackServerContext* context, const v1::CompareRequest* request) override;
  grpc::ServerWriteReactor<v1::CompareSubjectResponse>* CompareSubject(
      grpc::CallbackServerContext* context, const v1::CompareSubjectRequest* request) override;
  grpc::ServerWriteReactor<v1::ExportResponse>* Export(grpc::CallbackServerContext* context,
                                                       const v1::ExportRequest* request) override;
  grpc::ServerWriteReactor<v1::ListEventsResponse>* ListEvents(
      grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchConditionsResponse>* WatchConditions(
      grpc::CallbackServerContext* context, const v1::WatchConditionsRequest* request) override;

 private:
  ForwardCalls* const calls_;
  Here* const here_;
  const SplitQuery split_;
  const CompareAcross compare_across_;
};

class ForwardedView final : public v1::View::CallbackService {
 public:
  using Here = v1::View::CallbackService;
  ForwardedView(ForwardCalls* calls, Here* here) : calls_(calls), here_(here) {}

  grpc::ServerUnaryReactor* Fleet(grpc::CallbackServerContext* context,
                                  const v1::FleetRequest* request,
                                  v1::FleetResponse* response) override;
  grpc::ServerWriteReactor<v1::MatrixResponse>* Matrix(grpc::CallbackServerContext* context,
                                                       const v1::MatrixRequest* request) override;
  grpc::ServerUnaryReactor* WhoAmI(grpc::CallbackServerContext* context,
                                   const v1::WhoAmIRequest* request,
                                   v1::WhoAmIResponse* response) override {
    return here_->WhoAmI(context, request, response);
  }
  grpc::ServerUnaryReactor* Collector(grpc::CallbackServerContext* context,
                                      const v1::CollectorRequest* request,
                                      v1::CollectorResponse* response) override {
    return here_->Collector(context, request, response);
  }

 private:
  ForwardCalls* const calls_;
  Here* const here_;
};

class ForwardedMarks final : public v1::Marks::CallbackService {
 public:
  using Here = v1::Marks::CallbackService;
  ForwardedMarks(ForwardCalls* calls, Here* here) : calls_(calls), here_(here) {}

  grpc::ServerUnaryReactor* ChangeMarks(grpc::CallbackServerContext* context,
                                        const v1::ChangeMarksRequest* request,
                                        v1::ChangeMarksResponse* response) override;

 private:
  ForwardCalls* const calls_;
  Here* const here_;
};

class ForwardedAgentRequests final : public v1::AgentRequests::CallbackService {
 public:
  using Here = v1::AgentRequests::CallbackService;
  ForwardedAgentRequests(ForwardCalls* calls, Here* here) : calls_(calls), here_(here) {}

  grpc::ServerUnaryReactor* TakeStacks(grpc::CallbackServerContext* context,
                                       const v1::TakeStacksRequest* request,
                                       v1::TakeStacksResponse* response) override;
  grpc::ServerUnaryReactor* TakeProfiles(grpc::CallbackServerContext* context,
                                         const v1::TakeProfilesRequest* request,
                                         v1::TakeProfilesResponse* response) override;

 private:
  ForwardCalls* const calls_;
  Here* const here_;
};

// All of them, as one collector registers them.
class ForwardedServices {
 public:
  // The services that answer from what this collector keeps. Not owned; they outlive these.
  struct Here {
    v1::Query::CallbackService* query = nullptr;
    query::QueryService* service = nullptr;  // Behind `query`.
    ForwardedQuery::CompareAcross compare_across = nullptr;
    v1::View::CallbackService* view = nullptr;
    v1::Marks::CallbackService* marks = nullptr;
    v1::AgentRequests::CallbackService* agent_requests = nullptr;
    ::tensorboard::data::TensorBoardDataProvider::CallbackService* tensorboard = nullptr;
  };
  ForwardedServices(ForwardOptions options, const Here& here);

  void Register(grpc::ServerBuilder* builder);
  // `server` is the one that they are registered with. Before it takes calls.
  void Serve(grpc::Server* server);
  void Drain() { calls_.Drain(); }

 private:
  ForwardCalls calls_;
  ForwardedQuery query_;
  ForwardedView view_;
  ForwardedMarks marks_;
  ForwardedAgentRequests agent_requests_;
  ForwardedTensorBoard tensorboard_;
};

}  // namespace tacho::server::cluster
