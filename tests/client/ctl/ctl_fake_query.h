// A Query service, and two calls of View, whose answers a test writes down, on a real server on a
// free loopback port.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tacho/v1/query.grpc.pb.h"
#include "tacho/v1/view.grpc.pb.h"

namespace tacho::ctl {

class FakeQuery : public v1::Query::Service {
 public:
  FakeQuery() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    builder.RegisterService(&view_);
    server_ = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeQuery() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address;

  // Answers, set before a command runs.
  std::vector<v1::Job> jobs;
  bool jobs_of_patterns = true;  // False: a request with a pattern finds none.
  v1::GetJobResponse job;
  grpc::Status job_status;
  std::vector<v1::RangeResponse> range;
  grpc::Status range_status;
  bool range_hangs = false;  // After its last piece, until it is cancelled.
  v1::ListSeriesResponse series;
  v1::CardinalityResponse cardinality;
  v1::GoodputResponse goodput;
  v1::CostResponse cost;
  v1::ForecastResponse forecast;
  v1::FleetResponse fleet;
  std::string page_url;
  v1::IntegrateResponse integrals;
  grpc::Status integrals_status;
  v1::LatestResponse latest;
  v1::ListEventsResponse events;
  grpc::Status events_status;
  v1::LabelValuesResponse labels;
  v1::FirstNonFiniteResponse non_finite;
  v1::ConditionsResponse conditions;
  grpc::Status conditions_status;
  // The messages of each WatchConditions call in turn, like `watches`.
  std::vector<std::vector<v1::WatchConditionsResponse>> condition_watches;
  std::vector<v1::CompareResponse> comparison;
  // The messages of each Watch call in turn. All but the last end with UNAVAILABLE; the last waits.
  std::vector<std::vector<v1::WatchResponse>> watches;

  // The requests; read them after the command has returned.
  std::vector<std::string> shown;  // Each call's metadata "authorization"; empty if none.
  v1::RangeRequest range_request;
  std::vector<v1::IntegrateRequest> integrate_requests;
  v1::LatestRequest latest_request;
  v1::ListJobsRequest jobs_request;
  v1::ListEventsRequest events_request;
  v1::LabelValuesRequest labels_request;
  v1::FirstNonFiniteRequest non_finite_request;
  v1::CompareRequest compare_request;
  std::vector<v1::WatchRequest> watch_requests;
  v1::CardinalityRequest cardinality_request;
  v1::GoodputRequest goodput_request;
  v1::CostRequest cost_request;
  v1::ForecastRequest forecast_request;
  v1::FleetRequest fleet_request;
  v1::ConditionsRequest conditions_request;
  std::vector<v1::WatchConditionsRequest> condition_watch_requests;

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    Note(*context);
    jobs_request = *request;
    if (!jobs_of_patterns && !request->name_pattern().empty()) return grpc::Status::OK;
    // Pages of two, so that a client that forgets the token is found out.
    size_t begin = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    for (int i = 0; i < 2 && begin < jobs.size(); ++i) *response->add_jobs() = jobs[begin++];
    if (begin < jobs.size()) response->set_next_page_token(std::to_string(begin));
    return grpc::Status::OK;
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest*,
                      v1::GetJobResponse* response) override {
    Note(*context);
    *response = job;
    return job_status;
  }

  grpc::Status Goodput(grpc::ServerContext* context, const v1::GoodputRequest* request,
                       v1::GoodputResponse* response) override {
    Note(*context);
    goodput_request = *request;
    *response = goodput;
    return grpc::Status::OK;
  }

  grpc::Status Cost(grpc::ServerContext* context, const v1::CostRequest* request,
                    v1::CostResponse* response) override {
    Note(*context);
    cost_request = *request;
    *response = cost;
    return grpc::Status::OK;
  }

  grpc::Status Forecast(grpc::ServerContext* context, const v1::ForecastRequest* request,
                        v1::ForecastResponse* response) override {
    Note(*context);
    forecast_request = *request;
    *response = forecast;
    return grpc::Status::OK;
  }

  grpc::Status Cardinality(grpc::ServerContext* context, const v1::CardinalityRequest* request,
                           v1::CardinalityResponse* response) override {
    Note(*context);
    cardinality_request = *request;
    *response = cardinality;
    return grpc::Status::OK;
  }

  grpc::Status ListSeries(grpc::ServerContext* context, const v1::ListSeriesRequest*,
                          grpc::ServerWriter<v1::ListSeriesResponse>* writer) override {
    Note(*context);
    writer->Write(series);
    return grpc::Status::OK;
  }

  grpc::Status Range(grpc::ServerContext* context, const v1::RangeRequest* request,
                     grpc::ServerWriter<v1::RangeResponse>* writer) override {
    Note(*context);
    range_request = *request;
    for (const v1::RangeResponse& piece : range) {
      if (!writer->Write(piece)) break;
    }
    while (range_hangs && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return range_status;
  }

  grpc::Status Latest(grpc::ServerContext* context, const v1::LatestRequest* request,
                      grpc::ServerWriter<v1::LatestResponse>* writer) override {
    Note(*context);
    latest_request = *request;
    writer->Write(latest);
    return grpc::Status::OK;
  }

  grpc::Status LabelValues(grpc::ServerContext* context, const v1::LabelValuesRequest* request,
                           v1::LabelValuesResponse* response) override {
    Note(*context);
    labels_request = *request;
    *response = labels;
    return job_status;
  }

  grpc::Status FirstNonFinite(grpc::ServerContext* context,
                              const v1::FirstNonFiniteRequest* request,
                              v1::FirstNonFiniteResponse* response) override {
    Note(*context);
    non_finite_request = *request;
    *response = non_finite;
    return job_status;
  }

  grpc::Status Compare(grpc::ServerContext* context, const v1::CompareRequest* request,
                       grpc::ServerWriter<v1::CompareResponse>* writer) override {
    Note(*context);
    compare_request = *request;
    for (const v1::CompareResponse& message : comparison) writer->Write(message);
    return job_status;
  }

  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchResponse>* writer) override {
    Note(*context);
    const size_t call = std::min(watch_requests.size(), watches.size() - 1);
    watch_requests.push_back(*request);
    for (const v1::WatchResponse& message : watches[call]) writer->Write(message);
    if (call + 1 < watches.size()) return {grpc::StatusCode::UNAVAILABLE, "draining"};
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  grpc::Status Conditions(grpc::ServerContext* context, const v1::ConditionsRequest* request,
                          v1::ConditionsResponse* response) override {
    Note(*context);
    conditions_request = *request;
    *response = conditions;
    return conditions_status;
  }

  grpc::Status WatchConditions(grpc::ServerContext* context,
                               const v1::WatchConditionsRequest* request,
                               grpc::ServerWriter<v1::WatchConditionsResponse>* writer) override {
    Note(*context);
    const size_t call = std::min(condition_watch_requests.size(), condition_watches.size() - 1);
    condition_watch_requests.push_back(*request);
    for (const auto& message : condition_watches[call]) writer->Write(message);
    if (call + 1 < condition_watches.size()) return {grpc::StatusCode::UNAVAILABLE, "draining"};
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  grpc::Status Integrate(grpc::ServerContext* context, const v1::IntegrateRequest* request,
                         grpc::ServerWriter<v1::IntegrateResponse>* writer) override {
    Note(*context);
    integrate_requests.push_back(*request);
    if (integrals_status.ok()) writer->Write(integrals);
    return integrals_status;
  }

  grpc::Status ListEvents(grpc::ServerContext* context, const v1::ListEventsRequest* request,
                          grpc::ServerWriter<v1::ListEventsResponse>* writer) override {
    Note(*context);
    events_request = *request;
    if (events_status.ok()) writer->Write(events);
    return events_status;
  }

 private:
  void Note(const grpc::ServerContext& context) {
    const auto found = context.client_metadata().find("authorization");
    shown.push_back(found == context.client_metadata().end()
                        ? ""
                        : std::string(found->second.data(), found->second.size()));
  }

  class FakeView : public v1::View::Service {
   public:
    explicit FakeView(FakeQuery* query) : query_(query) {}

    grpc::Status Fleet(grpc::ServerContext* context, const v1::FleetRequest* request,
                       v1::FleetResponse* response) override {
      query_->Note(*context);
      query_->fleet_request = *request;
      *response = query_->fleet;
      return grpc::Status::OK;
    }

    grpc::Status WhoAmI(grpc::ServerContext*, const v1::WhoAmIRequest*,
                        v1::WhoAmIResponse* response) override {
      response->set_page_url(query_->page_url);
      return grpc::Status::OK;
    }

   private:
    FakeQuery* const query_;
  };

  FakeView view_{this};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tacho::ctl
