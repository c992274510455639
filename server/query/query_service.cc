// Each call is admitted, gets a worker, and runs there; the reactor sends what it makes. A call's
// place among the workers is given away before its client can see the end, so that the client's
// next call is not refused for it.
#include "server/query/query_service.h"

#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/conditions/window/signal_names.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/query/compare/compare_query.h"
#include "server/query/compare/subject_answer.h"
#include "server/query/lists/conditions_query.h"
#include "server/query/lists/cost_query.h"
#include "server/query/lists/event_listing.h"
#include "server/query/lists/export_query.h"
#include "server/query/lists/first_non_finite.h"
#include "server/query/lists/forecast_query.h"
#include "server/query/lists/goodput_query.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/job_listing.h"
#include "server/query/lists/listings.h"
#include "server/query/range/integrate_query.h"
#include "server/query/range/range_query.h"
#include "server/query/reactors.h"
#include "server/query/read/message_packing.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::query {

absl::Status WithoutOtherNames(const absl::Status& status, const security::Rights& rights,
                               const std::string* job) {
  if (!absl::IsNotFound(status) || job == nullptr || rights.SeesEveryJob()) return status;
  return absl::NotFoundError(absl::StrCat("no job \"", *job, "\""));
}

QueryService::QueryService(QueryServiceOptions options)
    : options_(std::move(options)),
      metrics_(options_.registry),
      limits_(options_.limits),
      signals_(options_.signals != nullptr ? options_.signals
                                           : std::make_shared<const conditions::SignalNames>()),
      cost_(options_.cost != nullptr ? options_.cost
                                     : std::make_shared<const cost::CostSettings>()),
      hub_({.store = options_.store,
            .now = options_.now,
            .alive_after = options_.watch_alive_after,
            .on_samples = [this](uint64_t samples) { metrics_.AddWatchedSamples(samples); }}),
      condition_watches_(
          {.board = options_.conditions == nullptr ? &no_conditions_ : options_.conditions,
           .now = options_.now,
           .alive_after = options_.watch_alive_after}),
      workers_(options_.limits.max_concurrent()) {
  if (std::thread::hardware_concurrency() < 2) return;
  spare_ = [this](std::function<void()> work) { return workers_.RunSpare(std::move(work)); };
}

QueryService::~QueryService() { Drain(); }

config::v1::Collector::Query QueryService::limits() const {
  absl::MutexLock lock(&limits_mutex_);
  return limits_;
}

std::shared_ptr<const conditions::SignalNames> QueryService::signals() const {
  absl::MutexLock lock(&limits_mutex_);
  return signals_;
}

std::shared_ptr<const cost::CostSettings> QueryService::cost_settings() const {
  absl::MutexLock lock(&limits_mutex_);
  return cost_;
}

absl::StatusOr<std::function<void()>> QueryService::Prepare(const config::v1::Collector& config) {
  auto signals = std::make_shared<const conditions::SignalNames>(
      conditions::ConfiguredNames(config.conditions().signals()));
  TACHO_ASSIGN_OR_RETURN(auto cost, cost::CostSettingsOf(config));
  return [this, limits = config.query(), signals = std::move(signals), cost = std::move(cost)] {
    workers_.SetMaxThreads(limits.max_concurrent());
    absl::MutexLock lock(&limits_mutex_);
    limits_ = limits;
    signals_ = signals;
    cost_ = cost;
  };
}

absl::Status QueryService::AdmissionStatus(WorkerPool::Admission admission) {
  switch (admission) {
    case WorkerPool::Admission::kAccepted:
      return absl::OkStatus();
    case WorkerPool::Admission::kFull:
      return errors::ErrorOf(
          errors::Failure::kOverloaded,
          "as many queries are at work as query.max_concurrent allows: try again");
    case WorkerPool::Admission::kClosed:
      return errors::Draining();
  }
  return errors::Draining();
}

void QueryService::Drain() {
  draining_ = true;
  hub_.Close();
  condition_watches_.Close();
  workers_.Close();
}

RunningQuery QueryService::Describe(const Asked& asked) const {
  RunningQuery query;
  query.method = asked.method;
  query.caller = asked.rights->name();
  query.peer =
      asked.context == nullptr ? std::string(asked.peer) : security::PeerOf(*asked.context);
  if (asked.job != nullptr) query.job = *asked.job;
  query.began = options_.now();
  return query;
}

absl::Status QueryService::RunOnWorker(const Asked& asked,
                                       std::function<absl::Status(const WorkerPool::Leave&)> work,
                                       std::function<void(const absl::Status&)> finish) {
  const absl::Time began = MonotonicNow();
  const char* const method = asked.method;
  const auto run = [this, method, began, query = Describe(asked), control = asked.control,
                    work = std::move(work),
                    finish = std::move(finish)](const WorkerPool::Leave& leave) {
    RunningQueries::Entry entry(&running_);
    entry.Begin(query, control);
    metrics_.Began();
    const absl::Status status = work(leave);
    entry.End();  // After finish() there may be no control any more.
    metrics_.Record(method, status, MonotonicNow() - began);
    metrics_.Ended();
    leave();
    finish(status);
  };
  absl::Status admitted = AdmissionStatus(workers_.RunAnswer(run));
  if (!admitted.ok()) metrics_.Record(method, admitted, MonotonicNow() - began);
  return admitted;
}

absl::StatusOr<security::RightsPtr> QueryService::Admit(const char* method,
                                                        const grpc::CallbackServerContext& context,
                                                        const Scope& scope) {
  const auto caller = security::AdmitCall(options_.access, context, security::Role::kRead);
  absl::Status status = caller.status();
  if (status.ok() && scope.job != nullptr && !scope.job->empty()) {
    status = caller->rights().CheckJob(*scope.job, scope.field);
  }
  if (status.ok()) return caller->rights_ptr();
  metrics_.Record(method, status, absl::ZeroDuration());
  return status;
}

void QueryService::CountUnparsed(absl::string_view method) {
  const bool is_view = absl::ConsumePrefix(&method, "/tacho.v1.View/");
  if (!is_view && !absl::ConsumePrefix(&method, "/tacho.v1.Query/")) return;
  metrics_.Record(absl::StrCat(is_view ? "view." : "", method), absl::InvalidArgumentError(""),
                  absl::ZeroDuration());
}

template <typename Work>
grpc::ServerUnaryReactor* QueryService::Answer(const char* method,
                                               grpc::CallbackServerContext* context, Scope scope,
                                               Work work) {
  auto* reactor = new UnaryReactor(absl::Nanoseconds(limits().timeout()), &draining_);
  const auto finish = [this, reactor](const absl::Status& status) {
    reactor->Finish(errors::ToGrpcStatus(status, ++answers_));
  };
  const auto rights = Admit(method, *context, scope);
  const absl::Status taken =
      !rights.ok() ? rights.status()
                   : RunOnWorker(
                         {method, context, rights->get(), scope.job, &reactor->control()},
                         [reactor, rights = *rights, scope,
                          work = std::move(work)](const WorkerPool::Leave&) {
                           [[maybe_unused]] const QueryControl& control = reactor->control();
                           absl::Status status;
                           if constexpr (std::is_invocable_v<Work, const security::Rights&,
                                                             const QueryControl&>) {
                             status = work(*rights, control);
                           } else {
                             status = work(*rights);
                           }
                           return WithoutOtherNames(status, *rights, scope.job);
                         },
                         finish);
  if (!taken.ok()) finish(taken);
  return reactor;
}

template <typename Response, typename Work>
grpc::ServerWriteReactor<Response>* QueryService::Stream(const char* method,
                                                         grpc::CallbackServerContext* context,
                                                         Scope scope, Work work) {
  auto* reactor =
      new StreamReactor<Response>(context, absl::Nanoseconds(limits().timeout()), &draining_);
  const auto finish = [this, reactor](const absl::Status& status) {
    reactor->End(errors::ToGrpcStatus(status, ++answers_));
  };
  const auto rights = Admit(method, *context, scope);
  const absl::Status taken =
      !rights.ok()
          ? rights.status()
          : RunOnWorker(
                {method, context, rights->get(), scope.job, &reactor->control()},
                [reactor, rights = *rights, scope,
                 work = std::move(work)](const WorkerPool::Leave& leave) {
                  absl::Status status;
                  if constexpr (std::is_invocable_v<Work, StreamReactor<Response>*,
                                                    const security::Rights&>) {
                    status = work(reactor, *rights);
                  } else {
                    status = work(reactor);
                  }
                  const absl::Status sent = reactor->Flush(status.ok(), leave);
                  return status.ok() ? sent : WithoutOtherNames(status, *rights, scope.job);
                },
                finish);
  if (!taken.ok()) finish(taken);
  return reactor;
}

template <typename Response>
grpc::ServerWriteReactor<Response>* QueryService::Across(const char* method,
                                                         grpc::CallbackServerContext* context,
                                                         const std::string& job,
                                                         Pieces<Response> work) {
  return Stream<Response>(
      method, context, {&job, "job"}, [work = std::move(work)](StreamReactor<Response>* reactor) {
        return work(reactor->control(),
                    [reactor](Response piece) { return reactor->Write(std::move(piece)); });
      });
}

template grpc::ServerWriteReactor<v1::ListSeriesResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::ListSeriesResponse>);
template grpc::ServerWriteReactor<v1::RangeResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::RangeResponse>);
template grpc::ServerWriteReactor<v1::IntegrateResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::IntegrateResponse>);
template grpc::ServerWriteReactor<v1::LatestResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::LatestResponse>);
template grpc::ServerWriteReactor<v1::ListEventsResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::ListEventsResponse>);
template grpc::ServerWriteReactor<v1::ExportResponse>* QueryService::Across(
    const char*, grpc::CallbackServerContext*, const std::string&, Pieces<v1::ExportResponse>);

grpc::ServerUnaryReactor* QueryService::ListJobs(grpc::CallbackServerContext* context,
                                                 const v1::ListJobsRequest* request,
                                                 v1::ListJobsResponse* response) {
  return Answer(
      "ListJobs", context, {},
      [this, request, response](const security::Rights& rights, const QueryControl& control) {
        return query::ListJobs(*options_.store, *request, options_.now(), control, response, rights,
                               options_.job_refusals, options_.own_part);
      });
}

grpc::ServerUnaryReactor* QueryService::GetJob(grpc::CallbackServerContext* context,
                                               const v1::GetJobRequest* request,
                                               v1::GetJobResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("GetJob", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return query::GetJob(*options_.store, *request, options_.now(), control, response,
                                       options_.job_refusals);
                });
}

grpc::ServerUnaryReactor* QueryService::ListMetrics(grpc::CallbackServerContext* context,
                                                    const v1::ListMetricsRequest* request,
                                                    v1::ListMetricsResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("ListMetrics", context, scope, [this, request, response](const security::Rights&) {
    return query::ListMetrics(*options_.store, *request, response);
  });
}

grpc::ServerUnaryReactor* QueryService::LabelValues(grpc::CallbackServerContext* context,
                                                    const v1::LabelValuesRequest* request,
                                                    v1::LabelValuesResponse* response) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Answer("LabelValues", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return query::LabelValues(*options_.store, *request, limits().max_series(),
                                            control, response);
                });
}

grpc::ServerUnaryReactor* QueryService::Goodput(grpc::CallbackServerContext* context,
                                                const v1::GoodputRequest* request,
                                                v1::GoodputResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("Goodput", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return GetGoodput(*options_.store, *request, *signals(), options_.now(), control,
                                    response, options_.reports);
                });
}

grpc::ServerUnaryReactor* QueryService::Cost(grpc::CallbackServerContext* context,
                                             const v1::CostRequest* request,
                                             v1::CostResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("Cost", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return GetCost(*options_.store, *request, *cost_settings(), options_.now(),
                                 control, response, options_.reports);
                });
}

grpc::ServerUnaryReactor* QueryService::Forecast(grpc::CallbackServerContext* context,
                                                 const v1::ForecastRequest* request,
                                                 v1::ForecastResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("Forecast", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return GetForecast(*options_.store, *request, *signals(), limits().max_series(),
                                     options_.now(), control, response);
                });
}

grpc::ServerUnaryReactor* QueryService::Cardinality(grpc::CallbackServerContext* context,
                                                    const v1::CardinalityRequest* request,
                                                    v1::CardinalityResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer(
      "Cardinality", context, scope, [this, request, response](const security::Rights& rights) {
        if (request->job().empty() && !rights.SeesEveryJob()) {
          return errors::ErrorOf(
              errors::Failure::kForbidden,
              absl::StrCat("job: \"", rights.name(),
                           "\" may not read every job, as listing all of them needs; name one"));
        }
        return query::Cardinality(*options_.store, options_.refusals, *request, response);
      });
}

grpc::ServerWriteReactor<v1::ListSeriesResponse>* QueryService::ListSeries(
    grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Stream<v1::ListSeriesResponse>(
      "ListSeries", context, scope,
      [this, request](StreamReactor<v1::ListSeriesResponse>* reactor) {
        return query::ListSeries(*options_.store, *request, limits().max_series(),
                                 reactor->control(),
                                 [&](auto piece) { return reactor->Write(std::move(piece)); });
      });
}

grpc::ServerWriteReactor<v1::RangeResponse>* QueryService::Range(
    grpc::CallbackServerContext* context, const v1::RangeRequest* request) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Stream<v1::RangeResponse>(
      "Range", context, scope,
      [this, request](StreamReactor<v1::RangeResponse>* reactor) -> absl::Status {
        const auto limits = this->limits();
        auto query = RangeQuery::Create(*options_.store, *request,
                                        {limits.max_series(), limits.max_samples()},
                                        reactor->control(), spare_);
        if (!query.ok()) return query.status();
        const auto write = [reactor](v1::RangeResponse message) {
          return reactor->Write(std::move(message));
        };
        MessagePacking<v1::RangeResponse> packing(request->packed(), write);
        v1::RangeResponse piece;
        for (uint64_t counted = 0;;) {
          absl::StatusOr<bool> more = (*query)->Next(&piece);
          if (!more.ok() || !*more) {
            absl::Status sent = packing.Flush();
            return more.ok() ? sent : more.status();
          }
          TACHO_RETURN_IF_ERROR(packing.Add(std::move(piece)));
          metrics_.AddSamples((*query)->samples() - std::exchange(counted, (*query)->samples()));
        }
      });
}

grpc::ServerWriteReactor<v1::IntegrateResponse>* QueryService::Integrate(
    grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Stream<v1::IntegrateResponse>(
      "Integrate", context, scope, [this, request](StreamReactor<v1::IntegrateResponse>* reactor) {
        const auto limits = this->limits();
        return query::Integrate(*options_.store, *request,
                                {limits.max_series(), limits.max_samples()}, reactor->control(),
                                [&](auto piece) { return reactor->Write(std::move(piece)); });
      });
}

grpc::ServerWriteReactor<v1::LatestResponse>* QueryService::Latest(
    grpc::CallbackServerContext* context, const v1::LatestRequest* request) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Stream<v1::LatestResponse>(
      "Latest", context, scope, [this, request](StreamReactor<v1::LatestResponse>* reactor) {
        return query::Latest(*options_.store, *request, limits().max_series(), reactor->control(),
                             [&](auto piece) { return reactor->Write(std::move(piece)); });
      });
}

grpc::ServerWriteReactor<v1::CompareResponse>* QueryService::CompareAcross(
    grpc::CallbackServerContext* context, const v1::CompareRequest* request,
    SubjectsElsewhere elsewhere) {
  return Stream<v1::CompareResponse>(
      "Compare", context, {},
      [this, request, elsewhere = std::move(elsewhere)](StreamReactor<v1::CompareResponse>* reactor,
                                                        const security::Rights& rights) {
        const auto limits = this->limits();
        const auto write = [reactor](v1::CompareResponse message) {
          return reactor->Write(std::move(message));
        };
        MessagePacking<v1::CompareResponse> packing(request->packed(), write);
        absl::Status status = query::Compare(
            *options_.store, *request, {limits.max_series(), limits.max_samples()}, rights,
            reactor->control(), elsewhere,
            [&](v1::CompareResponse piece) { return packing.Add(std::move(piece)); });
        absl::Status sent = packing.Flush();
        return status.ok() ? sent : status;
      });
}

grpc::ServerWriteReactor<v1::CompareSubjectResponse>* QueryService::CompareSubject(
    grpc::CallbackServerContext* context, const v1::CompareSubjectRequest* request) {
  const auto& subjects = request->compare().subjects();
  const v1::Subject& subject = subjects.empty() ? v1::Subject::default_instance() : subjects[0];
  const Scope scope = {&subject.job(), "compare.subjects.job"};
  return Stream<v1::CompareSubjectResponse>(
      "CompareSubject", context, scope,
      [this, request](StreamReactor<v1::CompareSubjectResponse>* reactor) {
        return AnswerSubject(*options_.store, *request, limits().max_series(), reactor->control(),
                             [reactor](v1::CompareSubjectResponse piece) {
                               return reactor->Write(std::move(piece));
                             });
      });
}

grpc::ServerUnaryReactor* QueryService::FirstNonFinite(grpc::CallbackServerContext* context,
                                                       const v1::FirstNonFiniteRequest* request,
                                                       v1::FirstNonFiniteResponse* response) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Answer("FirstNonFinite", context, scope,
                [this, request, response](const security::Rights&, const QueryControl& control) {
                  return query::FirstNonFinite(*options_.store, *request, limits().max_series(),
                                               control, response);
                });
}

grpc::ServerWriteReactor<v1::ExportResponse>* QueryService::Export(
    grpc::CallbackServerContext* context, const v1::ExportRequest* request) {
  const Scope scope = {&request->selector().job(), "selector.job"};
  return Stream<v1::ExportResponse>(
      "Export", context, scope, [this, request](StreamReactor<v1::ExportResponse>* reactor) {
        return query::Export(*options_.store, *request,
                             {options_.limits.max_series(), options_.limits.max_samples()},
                             options_.now(), reactor->control(),
                             [&](const v1::ExportResponse& piece) {
                               const int samples = piece.samples().points().values_size();
                               metrics_.AddSamples(static_cast<uint64_t>(samples));
                               return reactor->Write(piece);
                             });
      });
}

grpc::ServerUnaryReactor* QueryService::Conditions(grpc::CallbackServerContext* context,
                                                   const v1::ConditionsRequest* request,
                                                   v1::ConditionsResponse* response) {
  const Scope scope = {&request->job(), "job"};
  return Answer("Conditions", context, scope,
                [this, request, response](const security::Rights& rights) {
                  const conditions::ConditionBoard& board =
                      options_.conditions == nullptr ? no_conditions_ : *options_.conditions;
                  return ListConditions(*options_.store, board, *request, rights, response);
                });
}

grpc::ServerWriteReactor<v1::ListEventsResponse>* QueryService::ListEvents(
    grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) {
  const Scope scope = {&request->job(), "job"};
  return Stream<v1::ListEventsResponse>(
      "ListEvents", context, scope,
      [this, request](StreamReactor<v1::ListEventsResponse>* reactor) {
        return query::ListEvents(*options_.store, *request, reactor->control(),
                                 [&](auto piece) { return reactor->Write(std::move(piece)); });
      });
}

}  // namespace tacho::server::query
