// The Admin service of one collector, as calls that return absl::Status.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/call/channel.h"
#include "tacho/v1/admin.grpc.pb.h"

namespace tacho::ctl {

// Every call returns the collector's status code and text, or what QueryClient returns when nothing
// answers. Not thread-safe.
class AdminClient {
 public:
  // The address is "unix:/path" or HOST:PORT.
  explicit AdminClient(ClientOptions options);

  // The collector waits up to `timeout`; the answer may take as long again as any call's.
  absl::StatusOr<v1::DrainResponse> Drain(absl::Duration timeout);
  absl::StatusOr<v1::GetStatsResponse> GetStats();
  absl::StatusOr<v1::SetLogLevelResponse> SetLogLevel(const v1::SetLogLevelRequest& request);
  absl::StatusOr<v1::ReloadResponse> Reload();
  absl::StatusOr<v1::SnapshotResponse> Snapshot(const v1::SnapshotRequest& request);

  // Why no call is possible; OK otherwise.
  const absl::Status& setup() const { return channel_.status(); }
  // Whether the last failure came from a collector, not from the connection.
  bool reached() const { return reached_; }
  const std::string& address() const { return options_.address; }
  absl::Duration timeout() const { return options_.timeout; }

 private:
  template <typename Response, typename Request, typename Method>
  absl::StatusOr<Response> Call(Method method, const Request& request, absl::Duration longer);

  const ClientOptions options_;
  const Channel channel_;
  std::unique_ptr<v1::Admin::Stub> stub_;
  bool reached_ = false;
};

}  // namespace tacho::ctl
