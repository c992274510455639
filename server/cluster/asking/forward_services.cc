#include "server/cluster/asking/forward_services.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/cluster/asking/forward_merge.h"
#include "server/cluster/asking/forward_reactors.h"
#include "server/cluster/asking/forward_watch.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::cluster {
namespace {

// Asks the owner of a job on the caller's thread, which may wait.
query::SubjectsElsewhere OwnersOfSubjects(ForwardCalls* calls, const Asker& asker) {
  return [calls, asker](absl::string_view job) -> query::SubjectCall {
    const uint32_t shard = calls->membership().ShardOf(job);
    if (shard == calls->membership().own()) return nullptr;
    return [calls, asker, shard](
               const v1::CompareSubjectRequest& request,
               absl::FunctionRef<absl::Status(const v1::CompareSubjectResponse&)> take) {
      ForwardCalls::Call call(calls, shard, asker);
      const auto owner = v1::Query::NewStub(call.channel());
      const auto reader = owner->CompareSubject(call.context(), request);
      absl::Status status;
      for (v1::CompareSubjectResponse piece; status.ok() && reader->Read(&piece);) {
        status = take(piece);
      }
      if (!status.ok()) call.Cancel();
      const grpc::Status ended = call.Ended(reader->Finish());
      return status.ok() ? errors::FromGrpcStatus(ended) : status;
    };
  };
}

}  // namespace

grpc::ServerUnaryReactor* ForwardedQuery::ListJobs(grpc::CallbackServerContext* context,
                                                   const v1::ListJobsRequest* request,
                                                   v1::ListJobsResponse* response) {
  if (!calls_->AsksAll(*context)) return here_->ListJobs(context, request, response);
  const v1::ListJobsRequest asked = JobsAsked(*request, calls_->now());
  return AnswerByAll<v1::ListJobsRequest, v1::ListJobsResponse>(
      calls_, "/tacho.v1.Query/ListJobs", asked, context, response,
      [calls = calls_, asked](auto* answers, v1::ListJobsResponse* to) {
        return MergeJobs(calls->membership(), asked, answers, to);
      });
}

grpc::ServerUnaryReactor* ForwardedQuery::GetJob(grpc::CallbackServerContext* context,
                                                 const v1::GetJobRequest* request,
                                                 v1::GetJobResponse* response) {
  if (calls_->AsksParts(*context, request->job())) {
    return split_.GetJob(context, request, response);
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/GetJob", request->job(), context, request, response,
                       [=, this] { return here_->GetJob(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::ListMetrics(grpc::CallbackServerContext* context,
                                                      const v1::ListMetricsRequest* request,
                                                      v1::ListMetricsResponse* response) {
  if (calls_->AsksParts(*context, request->job())) {
    return split_.ListMetrics(context, request, response);
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/ListMetrics", request->job(), context, request,
                       response,
                       [=, this] { return here_->ListMetrics(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::LabelValues(grpc::CallbackServerContext* context,
                                                      const v1::LabelValuesRequest* request,
                                                      v1::LabelValuesResponse* response) {
  if (calls_->AsksParts(*context, request->selector().job())) {
    return split_.LabelValues(context, request, response);
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/LabelValues", request->selector().job(), context,
                       request, response,
                       [=, this] { return here_->LabelValues(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::Goodput(grpc::CallbackServerContext* context,
                                                  const v1::GoodputRequest* request,
                                                  v1::GoodputResponse* response) {
  if (calls_->membership().IsSplit(request->job())) {
    return RefuseCall(calls_, context, SplitQuery::NotAcross("goodput", request->job()));
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/Goodput", request->job(), context, request,
                       response, [=, this] { return here_->Goodput(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::Cost(grpc::CallbackServerContext* context,
                                               const v1::CostRequest* request,
                                               v1::CostResponse* response) {
  if (calls_->membership().IsSplit(request->job())) {
    return RefuseCall(calls_, context, SplitQuery::NotAcross("the cost", request->job()));
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/Cost", request->job(), context, request, response,
                       [=, this] { return here_->Cost(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::Forecast(grpc::CallbackServerContext* context,
                                                   const v1::ForecastRequest* request,
                                                   v1::ForecastResponse* response) {
  if (calls_->membership().IsSplit(request->job())) {
    return RefuseCall(calls_, context, SplitQuery::NotAcross("a forecast", request->job()));
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/Forecast", request->job(), context, request,
                       response, [=, this] { return here_->Forecast(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::FirstNonFinite(grpc::CallbackServerContext* context,
                                                         const v1::FirstNonFiniteRequest* request,
                                                         v1::FirstNonFiniteResponse* response) {
  if (calls_->membership().IsSplit(request->selector().job())) {
    return RefuseCall(
        calls_, context,
        SplitQuery::NotAcross("the spread of non-finite values", request->selector().job()));
  }
  return AnswerByOwner(calls_, "/tacho.v1.Query/FirstNonFinite", request->selector().job(), context,
                       request, response,
                       [=, this] { return here_->FirstNonFinite(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedQuery::Cardinality(grpc::CallbackServerContext* context,
                                                      const v1::CardinalityRequest* request,
                                                      v1::CardinalityResponse* response) {
  constexpr char kName[] = "/tacho.v1.Query/Cardinality";
  const bool of_one = !request->job().empty() && !calls_->membership().IsSplit(request->job());
  if (of_one || !calls_->AsksAll(*context)) {
    return AnswerByOwner(calls_, kName, request->job(), context, request, response,
                         [=, this] { return here_->Cardinality(context, request, response); });
  }
  return AnswerByAll<v1::CardinalityRequest, v1::CardinalityResponse>(
      calls_, kName, *request, context, response,
      [this, request](auto* answers, v1::CardinalityResponse* to) {
        return MergeCardinality(calls_->membership(), *request, answers, to);
      });
}

grpc::ServerUnaryReactor* ForwardedQuery::Conditions(grpc::CallbackServerContext* context,
                                                     const v1::ConditionsRequest* request,
                                                     v1::ConditionsResponse* response) {
  constexpr char kName[] = "/tacho.v1.Query/Conditions";
  const bool of_one = !request->job().empty() && !calls_->membership().IsSplit(request->job());
  if (of_one || !calls_->AsksAll(*context)) {
    return AnswerByOwner(calls_, kName, request->job(), context, request, response,
                         [=, this] { return here_->Conditions(context, request, response); });
  }
  return AnswerByAll<v1::ConditionsRequest, v1::ConditionsResponse>(
      calls_, kName, *request, context, response,
      [calls = calls_](auto* answers, v1::ConditionsResponse* to) {
        return MergeConditions(calls->membership(), answers, to);
      });
}

grpc::ServerWriteReactor<v1::ListSeriesResponse>* ForwardedQuery::ListSeries(
    grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job()))
    return split_.ListSeries(context, request);
  return StreamFromOwner<v1::ListSeriesResponse>(
      calls_, "/tacho.v1.Query/ListSeries", request->selector().job(), context, request,
      [=, this] { return here_->ListSeries(context, request); });
}

grpc::ServerWriteReactor<v1::RangeResponse>* ForwardedQuery::Range(
    grpc::CallbackServerContext* context, const v1::RangeRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job())) return split_.Range(context, request);
  return StreamFromOwner<v1::RangeResponse>(calls_, "/tacho.v1.Query/Range",
                                            request->selector().job(), context, request,
                                            [=, this] { return here_->Range(context, request); });
}

grpc::ServerWriteReactor<v1::IntegrateResponse>* ForwardedQuery::Integrate(
    grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job()))
    return split_.Integrate(context, request);
  return StreamFromOwner<v1::IntegrateResponse>(
      calls_, "/tacho.v1.Query/Integrate", request->selector().job(), context, request,
      [=, this] { return here_->Integrate(context, request); });
}

grpc::ServerWriteReactor<v1::LatestResponse>* ForwardedQuery::Latest(
    grpc::CallbackServerContext* context, const v1::LatestRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job()))
    return split_.Latest(context, request);
  return StreamFromOwner<v1::LatestResponse>(calls_, "/tacho.v1.Query/Latest",
                                             request->selector().job(), context, request,
                                             [=, this] { return here_->Latest(context, request); });
}

grpc::ServerWriteReactor<v1::WatchResponse>* ForwardedQuery::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job())) return split_.Watch(context, request);
  return StreamFromOwner<v1::WatchResponse>(calls_, "/tacho.v1.Query/Watch",
                                            request->selector().job(), context, request,
                                            [=, this] { return here_->Watch(context, request); });
}

grpc::ServerWriteReactor<v1::ExportResponse>* ForwardedQuery::Export(
    grpc::CallbackServerContext* context, const v1::ExportRequest* request) {
  if (calls_->AsksParts(*context, request->selector().job()))
    return split_.Export(context, request);
  return StreamFromOwner<v1::ExportResponse>(calls_, "/tacho.v1.Query/Export",
                                             request->selector().job(), context, request,
                                             [=, this] { return here_->Export(context, request); });
}

grpc::ServerWriteReactor<v1::ListEventsResponse>* ForwardedQuery::ListEvents(
    grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) {
  if (calls_->AsksParts(*context, request->job())) return split_.ListEvents(context, request);
  return StreamFromOwner<v1::ListEventsResponse>(
      calls_, "/tacho.v1.Query/ListEvents", request->job(), context, request,
      [=, this] { return here_->ListEvents(context, request); });
}

grpc::ServerWriteReactor<v1::CompareResponse>* ForwardedQuery::Compare(
    grpc::CallbackServerContext* context, const v1::CompareRequest* request) {
  std::string job;  // One of them.
  bool one_owner = true;
  const Membership& membership = calls_->membership();
  for (const v1::Subject& subject : request->subjects()) {
    if (membership.IsSplit(subject.job())) {
      return RefuseStream<v1::CompareResponse>(
          calls_, SplitQuery::NotAcross("a comparison", subject.job()));
    }
    if (job.empty()) job = subject.job();
    one_owner = one_owner && (subject.job().empty() ||
                              membership.ShardOf(job) == membership.ShardOf(subject.job()));
  }
  if (one_owner || !calls_->AsksAll(*context)) {
    return StreamFromOwner<v1::CompareResponse>(
        calls_, "/tacho.v1.Query/Compare", job, context, request,
        [=, this] { return here_->Compare(context, request); });
  }
  const auto asker = calls_->Admit(*context);
  if (!asker.ok()) {
    return RefuseStream<v1::CompareResponse>(calls_, asker.status());
  }
  return compare_across_(context, request, OwnersOfSubjects(calls_, *asker));
}

grpc::ServerWriteReactor<v1::CompareSubjectResponse>* ForwardedQuery::CompareSubject(
    grpc::CallbackServerContext* context, const v1::CompareSubjectRequest* request) {
  const auto& subjects = request->compare().subjects();
  return StreamFromOwner<v1::CompareSubjectResponse>(
      calls_, "/tacho.v1.Query/CompareSubject", subjects.empty() ? "" : subjects[0].job(), context,
      request, [=, this] { return here_->CompareSubject(context, request); });
}

grpc::ServerWriteReactor<v1::WatchConditionsResponse>* ForwardedQuery::WatchConditions(
    grpc::CallbackServerContext* context, const v1::WatchConditionsRequest* request) {
  const bool of_one = !request->job().empty() && !calls_->membership().IsSplit(request->job());
  if (!of_one && calls_->AsksAll(*context)) {
    const auto asker = calls_->Admit(*context);
    if (asker.ok()) return WatchAllConditions(calls_, *asker, *request);
    return RefuseStream<v1::WatchConditionsResponse>(calls_, asker.status());
  }
  return StreamFromOwner<v1::WatchConditionsResponse>(
      calls_, "/tacho.v1.Query/WatchConditions", request->job(), context, request,
      [=, this] { return here_->WatchConditions(context, request); });
}

grpc::ServerUnaryReactor* ForwardedView::Fleet(grpc::CallbackServerContext* context,
                                               const v1::FleetRequest* request,
                                               v1::FleetResponse* response) {
  if (!calls_->AsksAll(*context)) return here_->Fleet(context, request, response);
  return AnswerByAll<v1::FleetRequest, v1::FleetResponse>(
      calls_, "/tacho.v1.View/Fleet", FleetAsked(*request), context, response,
      [calls = calls_, request](auto* answers, v1::FleetResponse* to) {
        return MergeFleet(calls->membership(), *request, answers, to);
      });
}

grpc::ServerWriteReactor<v1::MatrixResponse>* ForwardedView::Matrix(
    grpc::CallbackServerContext* context, const v1::MatrixRequest* request) {
  const std::string& job = request->selector().job();
  if (calls_->membership().IsSplit(job)) {
    return RefuseStream<v1::MatrixResponse>(calls_, SplitQuery::NotAcross("a heat map", job));
  }
  return StreamFromOwner<v1::MatrixResponse>(calls_, "/tacho.v1.View/Matrix",
                                             request->selector().job(), context, request,
                                             [=, this] { return here_->Matrix(context, request); });
}

grpc::ServerUnaryReactor* ForwardedMarks::ChangeMarks(grpc::CallbackServerContext* context,
                                                      const v1::ChangeMarksRequest* request,
                                                      v1::ChangeMarksResponse* response) {
  if (calls_->membership().IsSplit(request->job())) {
    return RefuseCall(calls_, context, SplitQuery::NotAcross("marks", request->job()));
  }
  return AnswerByOwner(calls_, "/tacho.v1.Marks/ChangeMarks", request->job(), context, request,
                       response,
                       [=, this] { return here_->ChangeMarks(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedAgentRequests::TakeStacks(grpc::CallbackServerContext* context,
                                                             const v1::TakeStacksRequest* request,
                                                             v1::TakeStacksResponse* response) {
  return AnswerByOwner(calls_, "/tacho.v1.AgentRequests/TakeStacks", request->job(), context,
                       request, response,
                       [=, this] { return here_->TakeStacks(context, request, response); });
}

grpc::ServerUnaryReactor* ForwardedAgentRequests::TakeProfiles(
    grpc::CallbackServerContext* context, const v1::TakeProfilesRequest* request,
    v1::TakeProfilesResponse* response) {
  return AnswerByOwner(calls_, "/tacho.v1.AgentRequests/TakeProfiles", request->job(), context,
                       request, response,
                       [=, this] { return here_->TakeProfiles(context, request, response); });
}

ForwardedServices::ForwardedServices(ForwardOptions options, const Here& here)
    : calls_(std::move(options)),
      query_(&calls_, here.query, here.service, here.compare_across),
      view_(&calls_, here.view),
      marks_(&calls_, here.marks),
      agent_requests_(&calls_, here.agent_requests),
      tensorboard_(&calls_, here.tensorboard) {}

void ForwardedServices::Register(grpc::ServerBuilder* builder) {
  builder->RegisterService(&query_);
  builder->RegisterService(&tensorboard_);
  builder->RegisterService(&marks_);
  builder->RegisterService(&agent_requests_);
  builder->RegisterService(&view_);
}

void ForwardedServices::Serve(grpc::Server* server) {
  grpc::ChannelArguments no_limits;
  no_limits.SetMaxReceiveMessageSize(-1);
  calls_.SetOwn(server->InProcessChannel(no_limits));
}

}  // namespace tacho::server::cluster
