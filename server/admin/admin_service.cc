#include "server/admin/admin_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::admin {
namespace {

// One that drains, one that makes a snapshot, and some that look.
constexpr uint32_t kThreads = 4;

constexpr absl::Duration kDefaultDrain = absl::Seconds(15);
constexpr absl::Duration kMaxDrain = absl::Minutes(10);

}  // namespace

AdminService::AdminService(AdminServiceOptions options)
    : options_(std::move(options)), snapshots_(options_.snapshots), workers_(kThreads) {}

grpc::ServerUnaryReactor* AdminService::Run(const char* method,
                                            grpc::CallbackServerContext* context,
                                            std::function<absl::Status()> work) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (options_.authorize) {
    if (absl::Status allowed = options_.authorize(*context); !allowed.ok()) {
      options_.log.Limited(
          log::Level::kWarn, "admin call refused",
          {{"method", method}, {"peer", context->peer()}, {"reason", allowed.message()}});
      reactor->Finish(errors::ToGrpcStatus(allowed));
      return reactor;
    }
  }
  const auto run = [this, method, reactor, peer = context->peer(), work = std::move(work)] {
    const absl::Status status = work();
    options_.log.Info("admin call", {{"method", method},
                                     {"peer", peer},
                                     {"code", absl::StatusCodeToString(status.code())},
                                     {"text", status.message()}});
    reactor->Finish(errors::ToGrpcStatus(status));
  };
  if (workers_.Run(run) != query::WorkerPool::Admission::kAccepted) {
    reactor->Finish(errors::ToGrpcStatus(errors::ErrorOf(
        errors::Failure::kOverloaded,
        absl::StrCat(kThreads,
                     " calls of this service are running: try again when one has ended"))));
  }
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::Drain(grpc::CallbackServerContext* context,
                                              const v1::DrainRequest* request,
                                              v1::DrainResponse* response) {
  return Run("Drain", context, [=, this] { return DrainNow(*request, response); });
}

absl::Status AdminService::DrainNow(const v1::DrainRequest& request, v1::DrainResponse* response) {
  const absl::Duration timeout =
      request.timeout_ns() == 0 ? kDefaultDrain : absl::Nanoseconds(request.timeout_ns());
  if (timeout < absl::ZeroDuration() || timeout > kMaxDrain) {
    return errors::InvalidFieldError(
        "timeout_ns", absl::StrCat("expected 0 to ", kMaxDrain / absl::Nanoseconds(1)));
  }
  *response = options_.actions.drain(timeout);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::GetStats(grpc::CallbackServerContext* context,
                                                 const v1::GetStatsRequest* /*request*/,
                                                 v1::GetStatsResponse* response) {
  return Run("GetStats", context, [=, this] {
    options_.actions.fill_stats(response);
    FillLog(response->mutable_log());
    absl::MutexLock lock(&mutex_);
    if (!last_snapshot_.name().empty()) *response->mutable_last_snapshot() = last_snapshot_;
    return absl::OkStatus();
  });
}

void AdminService::FillLog(v1::GetStatsResponse::LogStats* stats) const {
  const log::Log::Levels levels = options_.log.levels();
  stats->set_level(std::string(log::NameOf(levels.in_force)));
  stats->set_configured_level(std::string(log::NameOf(levels.configured)));
  if (levels.override_until > absl::InfinitePast() &&
      levels.override_until < absl::InfiniteFuture()) {
    stats->set_falls_back_unix_ns(absl::ToUnixNanos(levels.override_until));
  }
  stats->set_lines_left_out(options_.log.counts().left_out);
}

grpc::ServerUnaryReactor* AdminService::SetLogLevel(grpc::CallbackServerContext* context,
                                                    const v1::SetLogLevelRequest* request,
                                                    v1::SetLogLevelResponse* response) {
  return Run("SetLogLevel", context, [=, this] { return SetLevelNow(*request, response); });
}

absl::Status AdminService::SetLevelNow(const v1::SetLogLevelRequest& request,
                                       v1::SetLogLevelResponse* response) {
  if (request.duration_ns() < 0) {
    return errors::InvalidFieldError("duration_ns", "expected 0 or more");
  }
  const std::optional<log::Level> level = log::LevelNamed(request.level());
  if (!level && !request.level().empty()) {
    return errors::InvalidFieldError("level",
                                     "expected debug, info, warn, error, or nothing for that of "
                                     "the configuration");
  }
  const absl::Duration duration = request.duration_ns() == 0
                                      ? absl::InfiniteDuration()
                                      : absl::Nanoseconds(request.duration_ns());
  options_.log.Override(level.value_or(log::Level::kInfo), level ? duration : absl::ZeroDuration());
  FillLog(response->mutable_log());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::Reload(grpc::CallbackServerContext* context,
                                               const v1::ReloadRequest* /*request*/,
                                               v1::ReloadResponse* /*response*/) {
  return Run("Reload", context, [this] { return options_.actions.reload(); });
}

grpc::ServerUnaryReactor* AdminService::Snapshot(grpc::CallbackServerContext* context,
                                                 const v1::SnapshotRequest* request,
                                                 v1::SnapshotResponse* response) {
  return Run("Snapshot", context, [=, this] { return SnapshotNow(*request, response); });
}

absl::Status AdminService::SnapshotNow(const v1::SnapshotRequest& request,
                                       v1::SnapshotResponse* response) {
  const auto made = snapshots_.Make(request.name());
  if (!made.ok()) return made.status();
  response->set_name(made->name);
  response->set_path(made->path);
  response->set_begun_unix_ns(absl::ToUnixNanos(made->begun));
  response->set_duration_ns(absl::ToInt64Nanoseconds(made->took));
  response->set_files(made->files);
  response->set_bytes(made->bytes);
  options_.log.Info("snapshot made", {{"path", made->path},
                                      {"bytes", made->bytes},
                                      {"seconds", absl::ToDoubleSeconds(made->took)}});
  absl::MutexLock lock(&mutex_);
  last_snapshot_ = *response;
  return absl::OkStatus();
}

}  // namespace tacho::server::admin
