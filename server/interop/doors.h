// All doors for other tools, as the configuration opens them, and the intake behind them.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_builder.h"
#include "server/http/http_guard.h"
#include "server/http/http_router.h"
#include "server/interop/influx_door.h"
#include "server/interop/intake.h"
#include "server/interop/member_writes.h"
#include "server/interop/otlp_door.h"
#include "server/interop/otlp_logs_door.h"
#include "server/interop/push_door.h"
#include "server/interop/remote_write_door.h"
#include "server/interop/statsd_door.h"
#include "tacho/config/v1/interop.pb.h"

namespace tacho::server::interop {

// Thread-safe. Must outlive the servers and the store, which call it.
class Doors {
 public:
  //   as Intake::Create() and StatsdDoor::Open().
  static absl::StatusOr<std::unique_ptr<Doors>> Open(const config::v1::Interop& config,
                                                     IntakeOptions options,
                                                     const http::HttpGuard& guard);

  Intake* intake() { return intake_.get(); }
  void Register(grpc::ServerBuilder* builder);
  // The methods over gRPC whose messages may be gzip.
  static std::vector<absl::string_view> MethodsThatUnpack();
  void AddRoutes(std::vector<http::Route>* routes);
  // Stores what StatsD has added up. Call it before Elsewhere refuses and before the store
  // closes. May be called again.
  void StopStatsd();
  // Call it after the servers have stopped and before the store closes. May be called again.
  void Stop();

 private:
  Doors() = default;

  std::unique_ptr<Intake> intake_;
  // Null: closed.
  std::unique_ptr<RemoteWriteDoor> remote_write_;
  std::unique_ptr<OtlpDoor> otlp_;
  std::unique_ptr<InfluxDoor> influx_;
  std::unique_ptr<OtlpLogsDoor> otlp_logs_;
  std::unique_ptr<PushDoor> push_;
  std::unique_ptr<StatsdDoor> statsd_;
  std::unique_ptr<MemberWrites> member_writes_;  // Null: there are no other members.
};

}  // namespace tacho::server::interop
