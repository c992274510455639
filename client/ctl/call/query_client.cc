#include "client/ctl/call/query_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/time/clock.h"
#include "client/ctl/text/condition_text.h"

namespace tacho::ctl {
namespace {

constexpr uint32_t kJobsPerPage = 1000;

}  // namespace

bool CameFromPeer(const grpc::Status& status, grpc::Channel* channel) {
  const bool could_be_the_way = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                                status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  return !could_be_the_way || channel->GetState(false) == GRPC_CHANNEL_READY;
}

QueryClient::QueryClient(ClientOptions options)
    : options_(std::move(options)),
      channel_(options_),
      stub_(v1::Query::NewStub(channel_.grpc())) {}

void QueryClient::Prepare(grpc::ClientContext* context) const {
  channel_.Prepare(context);
  context->set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout));
}

absl::Status QueryClient::FromGrpc(const grpc::Status& status) {
  reached_ = CameFromPeer(status, channel_.grpc().get());
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// On a completion queue rather than with the blocking reader, because only a queue can be waited on
// for a while: a long answer may take as long as it likes while it keeps coming.
template <typename Response, typename Start>
absl::Status QueryClient::ReadStream(const Start& start, const Handler<Response>& handle) {
  if (!setup().ok()) return setup();
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
      queue.Next(&tag, &ok);  // What was cancelled still has to come back.
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
  if (!setup().ok()) return setup();
  std::vector<v1::Job> jobs;
  do {
    const size_t missing = at_most == 0 ? kJobsPerPage : at_most - jobs.size();
    request.set_page_size(static_cast<uint32_t>(std::min<size_t>(missing, kJobsPerPage)));
    grpc::ClientContext context;
    Prepare(&context);
    v1::ListJobsResponse response;
    absl::Status status = FromGrpc(stub_->ListJobs(&context, request, &response));
    if (!status.ok()) return status;
    jobs.insert(jobs.end(), response.jobs().begin(), response.jobs().end());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && (at_most == 0 || jobs.size() < at_most));
  return jobs;
}

template <typename Request, typename Response>
absl::StatusOr<Response> QueryClient::Call(
    grpc::Status (v1::Query::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request) {
  if (!setup().ok()) return setup();
  grpc::ClientContext context;
  Prepare(&context);
  Response response;
  absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::GetJobResponse> QueryClient::GetJob(const std::string& job) {
  v1::GetJobRequest request;
  request.set_job(job);
  return Call(&v1::Query::Stub::GetJob, request);
}

absl::StatusOr<v1::LabelValuesResponse> QueryClient::LabelValues(
    const v1::LabelValuesRequest& request) {
  return Call(&v1::Query::Stub::LabelValues, request);
}

absl::StatusOr<v1::FirstNonFiniteResponse> QueryClient::FirstNonFinite(
    const v1::FirstNonFiniteRequest& request) {
  return Call(&v1::Query::Stub::FirstNonFinite, request);
}

absl::StatusOr<v1::GoodputResponse> QueryClient::Goodput(const v1::GoodputRequest& request) {
  return Call(&v1::Query::Stub::Goodput, request);
}

absl::StatusOr<v1::CardinalityResponse> QueryClient::Cardinality(
    const v1::CardinalityRequest& request) {
  return Call(&v1::Query::Stub::Cardinality, request);
}

absl::StatusOr<v1::ConditionsResponse> QueryClient::Conditions(
    const v1::ConditionsRequest& request) {
  return Call(&v1::Query::Stub::Conditions, request);
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
  return ReadStream<v1::ListSeriesResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncListSeries(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Range(const v1::RangeRequest& request,
                                const Handler<v1::RangeResponse>& handle) {
  v1::RangeRequest packed = request;
  packed.set_packed(true);
  return ReadStream<v1::RangeResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncRange(context, packed, queue, nullptr);
      },
      [&](const v1::RangeResponse& message) {
        return handle(message) &&
               std::all_of(message.more().begin(), message.more().end(), std::cref(handle));
      });
}

absl::Status QueryClient::Latest(const v1::LatestRequest& request,
                                 const Handler<v1::LatestResponse>& handle) {
  return ReadStream<v1::LatestResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncLatest(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Export(const v1::ExportRequest& request,
                                 const Handler<v1::ExportResponse>& handle) {
  return ReadStream<v1::ExportResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncExport(context, request, queue, nullptr);
      },
      handle);
}

absl::Status QueryClient::Compare(const v1::CompareRequest& request,
                                  const Handler<v1::CompareResponse>& handle) {
  v1::CompareRequest packed = request;
  packed.set_packed(true);
  return ReadStream<v1::CompareResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncCompare(context, packed, queue, nullptr);
      },
      [&](const v1::CompareResponse& message) {
        return handle(message) &&
               std::all_of(message.more().begin(), message.more().end(), std::cref(handle));
      });
}

std::unique_ptr<WatchCall> QueryClient::Watch(const v1::WatchRequest& request) {
  auto context = std::make_unique<grpc::ClientContext>();
  channel_.Prepare(context.get());
  return std::make_unique<WatchCall>(std::move(context),
                                     [&](grpc::ClientContext* of, grpc::CompletionQueue* queue) {
                                       return stub_->AsyncWatch(of, request, queue, nullptr);
                                     });
}

std::unique_ptr<WatchConditionsCall> QueryClient::WatchConditions(
    const v1::WatchConditionsRequest& request) {
  auto context = std::make_unique<grpc::ClientContext>();
  channel_.Prepare(context.get());
  return std::make_unique<WatchConditionsCall>(
      std::move(context), [&](grpc::ClientContext* of, grpc::CompletionQueue* queue) {
        return stub_->AsyncWatchConditions(of, request, queue, nullptr);
      });
}

absl::Status QueryClient::ListEvents(const v1::ListEventsRequest& request,
                                     const Handler<v1::ListEventsResponse>& handle) {
  return ReadStream<v1::ListEventsResponse>(
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return stub_->AsyncListEvents(context, request, queue, nullptr);
      },
      handle);
}

}  // namespace tacho::ctl
