#include "server/interop/doors.h"

#include <functional>
#include <iterator>
#include <utility>

#include "proto/base/status_macros.h"

namespace tacho::server::interop {

absl::StatusOr<std::unique_ptr<Doors>> Doors::Open(const config::v1::Interop& config,
                                                   IntakeOptions options,
                                                   const http::HttpGuard& guard) {
  std::unique_ptr<Doors> doors(new Doors());
  prometheus::Registry* const registry = options.registry;
  const std::function<absl::Time()> now = options.now;
  const auto monotonic = options.monotonic;
  const log::Log log = options.log;
  const bool has_others = options.elsewhere != nullptr;
  TACHO_ASSIGN_OR_RETURN(doors->intake_, Intake::Create(config, std::move(options)));
  if (config.remote_write()) {
    doors->remote_write_ = std::make_unique<RemoteWriteDoor>(
        RemoteWriteOptions{doors->intake(), guard, config.max_request_bytes(), registry});
  }
  if (config.otlp()) {
    doors->otlp_ =
        std::make_unique<OtlpDoor>(OtlpOptions{doors->intake(), guard, config, registry});
    doors->otlp_logs_ = std::make_unique<OtlpLogsDoor>(
        OtlpLogsOptions{doors->intake(), guard, config, registry, now});
  }
  if (config.influx()) {
    doors->influx_ = std::make_unique<InfluxDoor>(
        InfluxOptions{doors->intake(), guard, config.max_request_bytes(), registry, now});
  }
  if (config.push()) {
    PushDoorOptions push;
    push.intake = doors->intake();
    push.guard = guard;
    push.max_request_bytes = config.max_request_bytes();
    push.groups.expiry = absl::Nanoseconds(config.push_expiry());
    push.registry = registry;
    push.now = now;
    push.monotonic = monotonic;
    doors->push_ = std::make_unique<PushDoor>(std::move(push));
    doors->push_->Start();
  }
  if (const auto& from = config.statsd(); !from.listen().empty()) {
    StatsdDoorOptions statsd;
    statsd.intake = doors->intake();
    statsd.address = from.listen();
    statsd.interval = absl::Nanoseconds(from.interval());
    statsd.sums.max_series = from.max_series();
    statsd.sums.expiry = absl::Nanoseconds(from.expiry());
    statsd.sums.signed_gauges = from.signed_gauges();
    statsd.registry = registry;
    statsd.now = now;
    statsd.monotonic = monotonic;
    statsd.log = log;
    TACHO_ASSIGN_OR_RETURN(doors->statsd_, StatsdDoor::Open(std::move(statsd)));
  }
  if (has_others) {
    doors->member_writes_ = std::make_unique<MemberWrites>(
        MemberWritesOptions{doors->intake(), doors->push_.get(), guard});
  }
  return doors;
}

void Doors::StopStatsd() {
  if (statsd_ != nullptr) statsd_->Stop();
}

void Doors::Stop() {
  if (push_ != nullptr) push_->Stop();
  StopStatsd();
}

void Doors::Register(grpc::ServerBuilder* builder) {
  if (otlp_ != nullptr) builder->RegisterService(otlp_->calls());
  if (otlp_logs_ != nullptr) builder->RegisterService(otlp_logs_->calls());
  if (member_writes_ != nullptr) builder->RegisterService(member_writes_.get());
}

std::vector<absl::string_view> Doors::MethodsThatUnpack() {
  return {OtlpDoor::kMethod, OtlpLogsDoor::kMethod};
}

void Doors::AddRoutes(std::vector<http::Route>* routes) {
  const auto add = [routes](std::vector<http::Route> more) {
    std::move(more.begin(), more.end(), std::back_inserter(*routes));
  };
  if (remote_write_ != nullptr) add(remote_write_->Routes());
  if (otlp_ != nullptr) add(otlp_->Routes());
  if (influx_ != nullptr) add(influx_->Routes());
  if (otlp_logs_ != nullptr) add(otlp_logs_->Routes());
  if (push_ != nullptr) add(push_->Routes());
}

}  // namespace tacho::server::interop
