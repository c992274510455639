#include "client/ctl/call/admin_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <utility>

#include "absl/time/clock.h"

namespace tacho::ctl {

AdminClient::AdminClient(ClientOptions options)
    : options_(std::move(options)),
      channel_(options_),
      stub_(v1::Admin::NewStub(channel_.grpc())) {}

template <typename Response, typename Request, typename Method>
absl::StatusOr<Response> AdminClient::Call(Method method, const Request& request,
                                           absl::Duration longer) {
  if (!setup().ok()) return setup();
  grpc::ClientContext context;
  channel_.Prepare(&context);
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.timeout + longer));
  Response response;
  const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
  reached_ = CameFromPeer(status, channel_.grpc().get());
  if (status.ok()) return response;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

absl::StatusOr<v1::DrainResponse> AdminClient::Drain(absl::Duration timeout) {
  v1::DrainRequest request;
  request.set_timeout_ns(absl::ToInt64Nanoseconds(timeout));
  return Call<v1::DrainResponse>(&v1::Admin::Stub::Drain, request, timeout);
}

absl::StatusOr<v1::GetStatsResponse> AdminClient::GetStats() {
  return Call<v1::GetStatsResponse>(&v1::Admin::Stub::GetStats, v1::GetStatsRequest(), {});
}

absl::StatusOr<v1::SetLogLevelResponse> AdminClient::SetLogLevel(
    const v1::SetLogLevelRequest& request) {
  return Call<v1::SetLogLevelResponse>(&v1::Admin::Stub::SetLogLevel, request, {});
}

absl::StatusOr<v1::ReloadResponse> AdminClient::Reload() {
  return Call<v1::ReloadResponse>(&v1::Admin::Stub::Reload, v1::ReloadRequest(), {});
}

absl::StatusOr<v1::SnapshotResponse> AdminClient::Snapshot(const v1::SnapshotRequest& request) {
  return Call<v1::SnapshotResponse>(&v1::Admin::Stub::Snapshot, request, {});
}

}  // namespace tacho::ctl
