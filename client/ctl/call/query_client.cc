// Calls of the services. The header keeps gRPC's generated code, which takes
// seconds to compile, out of the commands.
#include "client/ctl/call/query_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/clock.h"
#include "client/ctl/call/channel.h"
#include "client/ctl/call/watch_call.h"
#include "client/ctl/text/condition_text.h"
#include "client/ctl/text/page_link.h"
#include "proto/base/status_macros.h"
#include "tacho/v1/agent_requests.grpc.pb.h"
#include "tacho/v1/cluster.grpc.pb.h"
#include "tacho/v1/marks.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tacho/v1/view.grpc.pb.h"

namespace tacho::ctl {
namespace {

constexpr uint32_t kJobsPerPage = 1000;

}  // namespace

class QueryClient::Calls {
 public:
  explicit Calls(ClientOptions options)
      : options_(std::move(options)),
        channel_(options_),
        stub_(v1::Query::NewStub(channel_.grpc())) {}

  const ClientOptions& options() const { return options_; }
  const Channel& channel() const { return channel_; }
  v1::Query::Stub* stub() const { return stub_.get(); }
  bool reached() const { return reached_; }

  // A call without a stream.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::Query::Stub::*method)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                                const Request& request) {
    return CallOf(stub_.get(), method, request);
  }

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> CallOf(
      Stub* stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
      const Request& request, absl::Duration longer = absl::ZeroDuration()) {
    if (!channel_.status().ok()) return channel_.status();
    grpc::ClientContext context;
    channel_.Prepare(&context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout + longer));
    Response response;
    absl::Status status = FromGrpc((stub->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  template <typename Response, typename Start>
  absl::Status ReadStream(const Start& start, const Handler<Response>& handle);

  template <typename Response, typename Start>
  std::unique_ptr<StreamCall<Response>> Watch(const Start& start) const {
    auto context = std::make_unique<grpc::ClientContext>();
    channel_.Prepare(context.get());
    return std::make_unique<StreamCall<Response>>(std::move(context), start);
  }

  absl::Status FromGrpc(const grpc::Status& status) {
    reached_ = CameFromPeer(status, channel_.grpc().get());
    return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
  }

 private:
  const ClientOptions options_;
  const Channel channel_;
  std::unique_ptr<v1::Query::Stub> stub_;
  bool reached_ = false;
};

QueryClient::QueryClient(ClientOptions options)
    : calls_(std::make_unique<Calls>(std::move(options))) {}
QueryClient::QueryClient(QueryClient&&) noexcept = default;
QueryClient::~QueryClient() = default;

const absl::Status& QueryClient::setup() const { return calls_->channel().status(); }
bool QueryClient::reached() const { return calls_->reached(); }
const std::string& QueryClient::address() const { return calls_->options().address; }
absl::Duration QueryClient::timeout() const { return calls_->options().timeout; }
absl::Status QueryClient::EndOf(const WatchCall& call) { return calls_->FromGrpc(call.status()); }
absl::Status QueryClient::EndOf(const WatchConditionsCall& call) {
  return calls_->FromGrpc(call.status());
}

// On a completion queue rather than with the blocking reader, because only a queue can be waited on
// for a while: a long answer may take as long as it likes while it keeps coming.
template <typename Response, typename Start>
absl::Status QueryClient::Calls::ReadStream(const Start& start, const Handler<Response>& handle) {
  if (!channel_.status().ok()) return channel_.status();
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  channel_.Prepare(&context);
  bool timed_out = false;
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    if (queue.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + options_.timeout)) ==
        grpc::CompletionQueue::TIMEOUT) {
      timed_out = true;
      context.TryCancel();
      queue.Next(&tag, &ok);  // A cancelled call still has to come back.
      return false;
    }
    return ok;
  };
  const std::unique_ptr<grpc::ClientAsyncReader<Response>> reader = start(&context, &queue);
  Response response;
  bool stopped = false;
  bool more = wait();
  while (more) {
    reader->Read(&response, nullptr);
    more = wait();
    reached_ = reached_ || more;
    if (more && !handle(response)) {
      stopped = true;
      more = false;
      context.TryCancel();
    }
  }
  grpc::Status status;
  reader->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  if (stopped) return absl::OkStatus();
  if (timed_out) status = {grpc::StatusCode::DEADLINE_EXCEEDED, "nothing came for too long"};
  return FromGrpc(status);
}

absl::StatusOr<std::vector<v1::Job>> QueryClient::ListJobs(v1::ListJobsRequest request,
                                                           size_t at_most) {
  std::vector<v1::Job> jobs;
  do {
    const size_t missing = at_most == 0 ? kJobsPerPage : at_most - jobs.size();
    request.set_page_size(static_cast<uint32_t>(std::min<size_t>(missing, kJobsPerPage)));
    TACHO_ASSIGN_OR_RETURN(const auto response, calls_->Call(&v1::Query::Stub::ListJobs, request));
    jobs.insert(jobs.end(), response.jobs().begin(), response.jobs().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && (at_most == 0 || jobs.size() < at_most));
  return jobs;
}

absl::StatusOr<v1::GetJobResponse> QueryClient::GetJob(const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return calls_->Call(&v1::Query::Stub::GetJob, request);
}

absl::StatusOr<v1::LabelValuesResponse> QueryClient::LabelValues(
    const v1::LabelValuesRequest& request) {
  return calls_->Call(&v1::Query::Stub::LabelValues, request);
}

absl::StatusOr<v1::FirstNonFiniteResponse> QueryClient::FirstNonFinite(
    const v1::FirstNonFiniteRequest& request) {
  return calls_->Call(&v1::Query::Stub::FirstNonFinite, request);
}

absl::StatusOr<std::vector<v1::Integral>> QueryClient::Integrate(
    const v1::IntegrateRequest& request) {
  std::vector<v1::Integral> integrals;
  absl::Status status = calls_->ReadStream<v1::IntegrateResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncIntegrate(context, request, queue, nullptr);
      },
      [&](const v1::IntegrateResponse& response) {
        integrals.insert(integrals.end(), response.integrals().begin(), response.integrals().end());
        return true;
      });
  if (!status.ok()) return status;
  return integrals;
}

absl::StatusOr<v1::GoodputResponse> QueryClient::Goodput(const v1::GoodputRequest& request) {
  return calls_->Call(&v1::Query::Stub::Goodput, request);
}

absl::StatusOr<v1::CostResponse> QueryClient::Cost(const v1::CostRequest& request) {
  return calls_->Call(&v1::Query::Stub::Cost, request);
}

absl::StatusOr<v1::ForecastResponse> QueryClient::Forecast(const v1::ForecastRequest& request) {
  return calls_->Call(&v1::Query::Stub::Forecast, request);
}

absl::StatusOr<v1::CardinalityResponse> QueryClient::Cardinality(
    const v1::CardinalityRequest& request) {
  return calls_->Call(&v1::Query::Stub::Cardinality, request);
}

absl::StatusOr<v1::ConditionsResponse> QueryClient::Conditions(
    const v1::ConditionsRequest& request) {
  return calls_->Call(&v1::Query::Stub::Conditions, request);
}

absl::StatusOr<v1::FleetResponse> QueryClient::Fleet(const v1::FleetRequest& request) {
  const auto stub = v1::View::NewStub(calls_->channel().grpc());
  return calls_->CallOf(stub.get(), &v1::View::Stub::Fleet, request);
}

std::string QueryClient::PageUrl() {
  const auto stub = v1::View::NewStub(calls_->channel().grpc());
  const auto who = calls_->CallOf(stub.get(), &v1::View::Stub::WhoAmI, v1::WhoAmIRequest());
  return who.ok() ? ReachablePage(who->page_url(), address()) : "";
}

absl::StatusOr<v1::ChangeMarksResponse> QueryClient::ChangeMarks(
    const v1::ChangeMarksRequest& request) {
  const auto stub = v1::Marks::NewStub(calls_->channel().grpc());
  return calls_->CallOf(stub.get(), &v1::Marks::Stub::ChangeMarks, request);
}

absl::StatusOr<v1::GetMembersResponse> QueryClient::GetMembers() {
  const auto stub = v1::Cluster::NewStub(calls_->channel().grpc());
  auto answer = calls_->CallOf(stub.get(), &v1::Cluster::Stub::GetMembers, v1::GetMembersRequest());
  if (absl::IsUnimplemented(answer.status())) return v1::GetMembersResponse();
  return answer;
}

absl::StatusOr<v1::TakeStacksResponse> QueryClient::TakeStacks(
    const v1::TakeStacksRequest& request) {
  const auto stub = v1::AgentRequests::NewStub(calls_->channel().grpc());
  return calls_->CallOf(stub.get(), &v1::AgentRequests::Stub::TakeStacks, request,
                        absl::Milliseconds(request.timeout_ms()));
}

absl::StatusOr<v1::TakeProfilesResponse> QueryClient::TakeProfiles(
    const v1::TakeProfilesRequest& request) {
  // The collector gives agents so long to store what they have recorded.
  constexpr absl::Duration kStoring = absl::Seconds(30);
  const auto stub = v1::AgentRequests::NewStub(calls_->channel().grpc());
  return calls_->CallOf(stub.get(), &v1::AgentRequests::Stub::TakeProfiles, request,
                        absl::Milliseconds(request.duration_ms()) + kStoring);
}

std::optional<std::vector<v1::Condition>> QueryClient::ConditionsOf(const std::string& job) {
  v1::ConditionsRequest request;
  request.set_job(job);
  const auto answer = Conditions(request);
  if (!answer.ok() || answer->conditions().empty()) return std::nullopt;
  std::vector<v1::Condition> conditions(answer->conditions().begin(), answer->conditions().end());
  SortConditions(&conditions);
  return conditions;
}

absl::Status QueryClient::ListSeries(const v1::ListSeriesRequest& request,
                                     const Handler<v1::ListSeriesResponse>& handle) {
  return calls_->ReadStream<v1::ListSeriesResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncListSeries(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Range(const v1::RangeRequest& request,
                                const Handler<v1::RangeResponse>& handle) {
  v1::RangeRequest packed = request;
  packed.set_packed(true);
  return calls_->ReadStream<v1::RangeResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncRange(context, packed, queue, nullptr);
      },
      [&](const v1::RangeResponse& message) {
        return handle(message) &&
               std::all_of(message.more().begin(), message.more().end(), std::cref(handle));
      });
}

absl::Status QueryClient::Latest(const v1::LatestRequest& request,
                                 const Handler<v1::LatestResponse>& handle) {
  return calls_->ReadStream<v1::LatestResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncLatest(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Export(const v1::ExportRequest& request,
                                 const Handler<v1::ExportResponse>& handle) {
  return calls_->ReadStream<v1::ExportResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncExport(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Compare(const v1::CompareRequest& request,
                                  const Handler<v1::CompareResponse>& handle) {
  v1::CompareRequest packed = request;
  packed.set_packed(true);
  return calls_->ReadStream<v1::CompareResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncCompare(context, packed, queue, nullptr);
      },
      [&](const v1::CompareResponse& message) {
        return handle(message) &&
               std::all_of(message.more().begin(), message.more().end(), std::cref(handle));
      });
}

std::unique_ptr<WatchCall> QueryClient::Watch(const v1::WatchRequest& request) {
  return calls_->Watch<v1::WatchResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncWatch(context, request, queue, nullptr);
      });
}

std::unique_ptr<WatchConditionsCall> QueryClient::WatchConditions(
    const v1::WatchConditionsRequest& request) {
  return calls_->Watch<v1::WatchConditionsResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncWatchConditions(context, request, queue, nullptr);
      });
}

absl::Status QueryClient::ListEvents(const v1::ListEventsRequest& request,
                                     const Handler<v1::ListEventsResponse>& handle) {
  return calls_->ReadStream<v1::ListEventsResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return calls_->stub()->AsyncListEvents(context, request, queue, nullptr);
      },
      handle);
}

}  // namespace tacho::ctl
