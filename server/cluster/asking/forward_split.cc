#include "server/cluster/asking/forward_split.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/cluster/asking/forward_reactors.h"
#include "server/cluster/asking/forward_watch.h"
#include "server/cluster/asking/member_part.h"
#include "server/cluster/split/merge_aggregate.h"
#include "server/cluster/split/merge_export.h"
#include "server/cluster/split/merge_parts.h"
#include "server/cluster/split/merge_streams.h"
#include "server/query/lists/listings.h"
#include "server/query/range/range_plan.h"

namespace tacho::server::cluster {
namespace {

v1::HostPart* PartOf(v1::GetJobRequest* request) { return request->mutable_part(); }
v1::HostPart* PartOf(v1::ListMetricsRequest* request) { return request->mutable_part(); }
template <typename Request>
v1::HostPart* PartOf(Request* request) {
  return request->mutable_selector()->mutable_part();
}

// A part is for members to ask for; a caller gets all.
absl::Status CheckWhole(bool has_part) {
  if (!has_part) return absl::OkStatus();
  return errors::InvalidFieldError(
      "part", "cannot be chosen of a job whose hosts are divided over the members of a cluster");
}
absl::Status CheckWhole(const v1::GetJobRequest& request) { return CheckWhole(request.has_part()); }
absl::Status CheckWhole(const v1::ListMetricsRequest& request) {
  return CheckWhole(request.has_part());
}
absl::Status CheckWhole(const v1::ListEventsRequest&) { return absl::OkStatus(); }
template <typename Request>
absl::Status CheckWhole(const Request& request) {
  return CheckWhole(request.selector().has_part());
}

// Events are not copied: each lies at one member.
std::vector<v1::ListEventsRequest> Asked(const ForwardCalls& calls,
                                         const v1::ListEventsRequest& request) {
  return std::vector<v1::ListEventsRequest>(calls.membership().shards(), request);
}
template <typename Request>
std::vector<Request> Asked(const ForwardCalls& calls, const Request& request) {
  return PartsAsked(calls.membership(), request, [](Request* one) { return PartOf(one); });
}

// The only member that has something to say: a matcher names one host. Nullopt: all may have.
std::optional<uint32_t> KeeperOf(const Membership& membership, const v1::Selector& selector) {
  for (const v1::Matcher& matcher : selector.matchers()) {
    const bool names = matcher.label() == "host" && matcher.op() == v1::Matcher::OP_EQUAL;
    if (names && !matcher.value().empty()) {
      return membership.ShardOf(selector.job(), matcher.value());
    }
  }
  return std::nullopt;
}
std::optional<uint32_t> KeeperOf(const Membership&, const v1::ListEventsRequest&) {
  return std::nullopt;
}
// It has the job and its events, too.
std::optional<uint32_t> KeeperOf(const Membership&, const v1::ExportRequest&) {
  return std::nullopt;
}
template <typename Request>
std::optional<uint32_t> KeeperOf(const Membership& membership, const Request& request) {
  return KeeperOf(membership, request.selector());
}

SplitLimits LimitsOf(uint64_t max_series, uint64_t fallback,
                     const config::v1::Collector::Query& most) {
  return {.max_series = std::min(max_series == 0 ? fallback : max_series, most.max_series()),
          .max_samples = most.max_samples()};
}

// A stream that `merge` makes of the members' streams: merge(parts, control, send).
template <typename Request, typename Response, typename Merge>
grpc::ServerWriteReactor<Response>* MergedStream(ForwardCalls* calls, query::QueryService* service,
                                                 const char* name, const std::string& job,
                                                 grpc::CallbackServerContext* context,
                                                 QueryMethod<Request, Response> method,
                                                 const Request& request, Merge merge) {
  const auto asker = calls->Admit(*context);
  if (!asker.ok()) return RefuseStream<Response>(calls, asker.status());
  if (auto status = CheckWhole(request); !status.ok()) return RefuseStream<Response>(calls, status);
  return service->Across<Response>(
      name, context, job,
      [=, asker = *asker, asked = Asked(*calls, request),
       keeper = KeeperOf(calls->membership(), request)](const query::QueryControl& control,
                                                        query::Send<Response> send) {
        return merge(AskParts(calls, asker, method, asked, keeper), control, send);
      });
}

}  // namespace

absl::Status SplitQuery::NotAcross(absl::string_view what, absl::string_view job) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " cannot be made of job ", job,
                   ": its hosts are divided over the members of the cluster "
                   "(cluster.split_jobs), and no member has all of its rows"));
}

grpc::ServerUnaryReactor* SplitQuery::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request,
                                             v1::GetJobResponse* response) const {
  if (auto status = CheckWhole(*request); !status.ok()) return RefuseCall(calls_, context, status);
  return AnswerByParts<v1::GetJobRequest, v1::GetJobResponse>(
      calls_, "/tacho.v1.Query/GetJob", Asked(*calls_, *request), context, response,
      [request](auto* answers, v1::GetJobResponse* to) {
        if (grpc::Status error = FirstErrorOfParts(*answers); !error.ok()) return error;
        for (auto& one : *answers) {
          if (one.status.ok()) AddJobDetail(std::move(one.response), to);
        }
        CutEntities(*request, to);
        return grpc::Status::OK;
      });
}

grpc::ServerUnaryReactor* SplitQuery::ListMetrics(grpc::CallbackServerContext* context,
                                                  const v1::ListMetricsRequest* request,
                                                  v1::ListMetricsResponse* response) const {
  if (auto status = CheckWhole(*request); !status.ok()) return RefuseCall(calls_, context, status);
  return AnswerByParts<v1::ListMetricsRequest, v1::ListMetricsResponse>(
      calls_, "/tacho.v1.Query/ListMetrics", Asked(*calls_, *request), context, response,
      [](auto* answers, v1::ListMetricsResponse* to) {
        if (grpc::Status error = FirstErrorOfParts(*answers); !error.ok()) return error;
        for (auto& one : *answers) AddMetrics(one.response, to);
        return grpc::Status::OK;
      });
}

grpc::ServerUnaryReactor* SplitQuery::LabelValues(grpc::CallbackServerContext* context,
                                                  const v1::LabelValuesRequest* request,
                                                  v1::LabelValuesResponse* response) const {
  if (auto status = CheckWhole(*request); !status.ok()) return RefuseCall(calls_, context, status);
  return AnswerByParts<v1::LabelValuesRequest, v1::LabelValuesResponse>(
      calls_, "/tacho.v1.Query/LabelValues", Asked(*calls_, *request), context, response,
      [request](auto* answers, v1::LabelValuesResponse* to) {
        if (grpc::Status error = FirstErrorOfParts(*answers); !error.ok()) return error;
        std::vector<v1::LabelValuesResponse> parts;
        for (auto& one : *answers) parts.push_back(std::move(one.response));
        auto merged = MergeValues(*request, parts);
        if (!merged.ok()) return errors::ToGrpcStatus(merged.status());
        *to = *std::move(merged);
        return grpc::Status::OK;
      });
}

grpc::ServerWriteReactor<v1::ListSeriesResponse>* SplitQuery::ListSeries(
    grpc::CallbackServerContext* context, const v1::ListSeriesRequest* request) const {
  const SplitLimits limits =
      LimitsOf(request->max_series(), query::kDefaultListedSeries, service_->limits());
  return MergedStream<v1::ListSeriesRequest, v1::ListSeriesResponse>(
      calls_, service_, "ListSeries", request->selector().job(), context,
      &v1::Query::Stub::ListSeries, *request,
      [limits](const auto& parts, const auto& control, const auto& send) {
        return MergeSeries(parts, limits, control, send);
      });
}

grpc::ServerWriteReactor<v1::LatestResponse>* SplitQuery::Latest(
    grpc::CallbackServerContext* context, const v1::LatestRequest* request) const {
  const SplitLimits limits =
      LimitsOf(request->max_series(), query::kDefaultListedSeries, service_->limits());
  return MergedStream<v1::LatestRequest, v1::LatestResponse>(
      calls_, service_, "Latest", request->selector().job(), context, &v1::Query::Stub::Latest,
      *request, [limits](const auto& parts, const auto& control, const auto& send) {
        return MergeLatest(parts, limits, control, send);
      });
}

grpc::ServerWriteReactor<v1::IntegrateResponse>* SplitQuery::Integrate(
    grpc::CallbackServerContext* context, const v1::IntegrateRequest* request) const {
  const SplitLimits limits =
      LimitsOf(request->max_series(), query::kDefaultRangeSeries, service_->limits());
  return MergedStream<v1::IntegrateRequest, v1::IntegrateResponse>(
      calls_, service_, "Integrate", request->selector().job(), context,
      &v1::Query::Stub::Integrate, *request,
      [limits, sum = request->sum()](const auto& parts, const auto& control, const auto& send) {
        return MergeIntegrals(parts, sum, limits, control, send);
      });
}

grpc::ServerWriteReactor<v1::RangeResponse>* SplitQuery::Range(
    grpc::CallbackServerContext* context, const v1::RangeRequest* request) const {
  SplitLimits limits =
      LimitsOf(request->max_series(), query::kDefaultRangeSeries, service_->limits());
  limits.max_samples =
      std::min(limits.max_samples,
               request->max_samples() == 0 ? query::kDefaultRangeSamples : request->max_samples());
  const bool packed = request->packed();
  // All series of one host lie at one member, which aggregates them itself.
  const bool at_one = KeeperOf(calls_->membership(), *request).has_value();
  if (at_one || request->aggregation().function() == v1::AGGREGATE_FUNCTION_UNSPECIFIED) {
    v1::RangeRequest asked = *request;
    asked.set_packed(true);
    return MergedStream<v1::RangeRequest, v1::RangeResponse>(
        calls_, service_, "Range", request->selector().job(), context, &v1::Query::Stub::Range,
        asked, [limits, packed](const auto& parts, const auto& control, const auto& send) {
          return MergeRange(parts, packed, limits, control, send);
        });
  }
  const auto asker = calls_->Admit(*context);
  if (!asker.ok()) return RefuseStream<v1::RangeResponse>(calls_, asker.status());
  if (auto status = CheckWhole(*request); !status.ok()) {
    return RefuseStream<v1::RangeResponse>(calls_, status);
  }
  return service_->Across<v1::RangeResponse>(
      "Range", context, request->selector().job(),
      [calls = calls_, asker = *asker, request, limits](const query::QueryControl& control,
                                                        query::Send<v1::RangeResponse> send) {
        const AskRange ask = [&](const v1::RangeRequest& asked) {
          return AskParts<v1::RangeRequest, v1::RangeResponse>(
              calls, asker, &v1::Query::Stub::Range, Asked(*calls, asked), std::nullopt);
        };
        return MergeAggregate(*request, ask, limits, control, send);
      });
}

grpc::ServerWriteReactor<v1::WatchResponse>* SplitQuery::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) const {
  const auto asker = calls_->Admit(*context);
  if (!asker.ok()) return RefuseStream<v1::WatchResponse>(calls_, asker.status());
  if (auto status = CheckWhole(*request); !status.ok()) {
    return RefuseStream<v1::WatchResponse>(calls_, status);
  }
  return WatchParts(calls_, *asker, Asked(*calls_, *request));
}

grpc::ServerWriteReactor<v1::ListEventsResponse>* SplitQuery::ListEvents(
    grpc::CallbackServerContext* context, const v1::ListEventsRequest* request) const {
  return MergedStream<v1::ListEventsRequest, v1::ListEventsResponse>(
      calls_, service_, "ListEvents", request->job(), context, &v1::Query::Stub::ListEvents,
      *request,
      [newest = request->newest()](const auto& parts, const auto& control, const auto& send) {
        return MergeEvents(parts, newest, control, send);
      });
}

grpc::ServerWriteReactor<v1::ExportResponse>* SplitQuery::Export(
    grpc::CallbackServerContext* context, const v1::ExportRequest* request) const {
  return MergedStream<v1::ExportRequest, v1::ExportResponse>(
      calls_, service_, "Export", request->selector().job(), context, &v1::Query::Stub::Export,
      *request, [](const auto& parts, const auto& control, const auto& send) {
        return MergeExport(parts, control, send);
      });
}

}  // namespace tacho::server::cluster
