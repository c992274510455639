// Runs each call as a query of the query service: with the same rights, limits and workers.
// TensorBoard shows the text of few status codes, so others are turned into those.
#include "server/tensorboard/tensorboard_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/query/reactors.h"
#include "server/tensorboard/experiment.h"
#include "server/tensorboard/scalars.h"
#include "server/tensorboard/texts.h"

namespace tacho::server {
namespace {

using tb::World;

absl::Status GetExperimentOf(const World& world,
                             const ::tensorboard::data::GetExperimentRequest& request,
                             ::tensorboard::data::GetExperimentResponse* response) {
  auto found = tb::FindExperiment(world.store, request.experiment_id(), world.rights, world.now);
  if (found.ok()) tb::Describe(*found, request.experiment_id(), response);
  return found.status();
}

absl::Status ListPluginsOf(const World& world,
                           const ::tensorboard::data::ListPluginsRequest& request,
                           ::tensorboard::data::ListPluginsResponse* response) {
  TACHO_ASSIGN_OR_RETURN(auto found, tb::FindExperiment(world.store, request.experiment_id(),
                                                        world.rights, world.now));
  const auto has_series = [](const storage::JobSummary& job) { return job.series > 0; };
  if (std::any_of(found.jobs.begin(), found.jobs.end(), has_series)) {
    response->add_plugins()->set_name(std::string(tb::kScalarsPlugin));
  }
  TACHO_ASSIGN_OR_RETURN(auto text,
                         tb::HasText(world, tb::FindRuns(world.store, found, tb::NameFilter())));
  if (text) response->add_plugins()->set_name(std::string(tb::kTextPlugin));
  return absl::OkStatus();
}

absl::Status ListRunsOf(const World& world, const ::tensorboard::data::ListRunsRequest& request,
                        ::tensorboard::data::ListRunsResponse* response) {
  TACHO_ASSIGN_OR_RETURN(auto found, tb::FindExperiment(world.store, request.experiment_id(),
                                                        world.rights, world.now));
  for (const tb::Run& run : tb::FindRuns(world.store, found, tb::NameFilter())) {
    auto* to = response->add_runs();
    to->set_name(run.name);
    to->set_start_time(tb::WallTime(run.first_time_ns()));
  }
  return absl::OkStatus();
}

template <typename Request>
absl::Status CheckBlobs(const World& world, const Request& request) {
  TACHO_RETURN_IF_ERROR(tb::CheckPlugin(request.plugin_filter()));
  return tb::FindExperiment(world.store, request.experiment_id(), world.rights, world.now).status();
}

// An answer without a message.
class NoBlob final : public grpc::ServerWriteReactor<::tensorboard::data::ReadBlobResponse> {
 public:
  explicit NoBlob(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

absl::Status ForTensorBoard(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return absl::InvalidArgumentError(status.message());
    case absl::StatusCode::kUnauthenticated:
      return absl::PermissionDeniedError(absl::StrCat(
          status.message(), "; TensorBoard shows none: docs/tensorboard.md says what helps"));
    default:
      return status;
  }
}

template <typename Work>
grpc::ServerUnaryReactor* TensorBoardService::Answer(const char* method,
                                                     grpc::CallbackServerContext* context,
                                                     Work work) {
  const query::QueryServiceOptions& options = queries_->options();
  auto* call = new query::UnaryReactor(absl::Nanoseconds(queries_->limits().timeout()),
                                       &queries_->draining());
  const auto finish = [this, call](const absl::Status& status) {
    call->Finish(errors::ToGrpcStatus(ForTensorBoard(status), queries_->NextSpread()));
  };
  const auto rights = queries_->Admit(method, *context, {});
  const auto run = [this, call, &options, work = std::move(work)](const security::Rights& allowed) {
    const World world = {*options.store, allowed, call->control(), options.now(),
                         queries_->limits().max_series()};
    return work(world);
  };
  const absl::Status taken =
      rights.ok() ? queries_->RunOnWorker(
                        {method, context, rights->get(), nullptr, &call->control()},
                        [rights = *rights, run](const auto&) { return run(*rights); }, finish)
                  : rights.status();
  if (!taken.ok()) finish(taken);
  return call;
}

grpc::ServerUnaryReactor* TensorBoardService::GetExperiment(
    grpc::CallbackServerContext* context, const ::tensorboard::data::GetExperimentRequest* request,
    ::tensorboard::data::GetExperimentResponse* response) {
  return Answer("tensorboard.GetExperiment", context, [request, response](const World& world) {
    return GetExperimentOf(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ListPlugins(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ListPluginsRequest* request,
    ::tensorboard::data::ListPluginsResponse* response) {
  return Answer("tensorboard.ListPlugins", context, [request, response](const World& world) {
    return ListPluginsOf(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ListRuns(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ListRunsRequest* request,
    ::tensorboard::data::ListRunsResponse* response) {
  return Answer("tensorboard.ListRuns", context, [request, response](const World& world) {
    return ListRunsOf(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ListScalars(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ListScalarsRequest* request,
    ::tensorboard::data::ListScalarsResponse* response) {
  return Answer("tensorboard.ListScalars", context, [request, response](const World& world) {
    return tb::ListScalars(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ReadScalars(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ReadScalarsRequest* request,
    ::tensorboard::data::ReadScalarsResponse* response) {
  return Answer("tensorboard.ReadScalars", context, [request, response](const World& world) {
    return tb::ReadScalars(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ListTensors(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ListTensorsRequest* request,
    ::tensorboard::data::ListTensorsResponse* response) {
  return Answer("tensorboard.ListTensors", context, [request, response](const World& world) {
    return tb::ListTensors(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ReadTensors(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ReadTensorsRequest* request,
    ::tensorboard::data::ReadTensorsResponse* response) {
  return Answer("tensorboard.ReadTensors", context, [request, response](const World& world) {
    return tb::ReadTensors(world, *request, response);
  });
}

grpc::ServerUnaryReactor* TensorBoardService::ListBlobSequences(
    grpc::CallbackServerContext* context,
    const ::tensorboard::data::ListBlobSequencesRequest* request,
    ::tensorboard::data::ListBlobSequencesResponse* /*response*/) {
  return Answer("tensorboard.ListBlobSequences", context,
                [request](const World& world) { return CheckBlobs(world, *request); });
}

grpc::ServerUnaryReactor* TensorBoardService::ReadBlobSequences(
    grpc::CallbackServerContext* context,
    const ::tensorboard::data::ReadBlobSequencesRequest* request,
    ::tensorboard::data::ReadBlobSequencesResponse* /*response*/) {
  return Answer("tensorboard.ReadBlobSequences", context, [request](const World& world) {
    absl::Status status = tb::CheckDownsample(request->has_downsample(), request->downsample());
    return status.ok() ? CheckBlobs(world, *request) : status;
  });
}

grpc::ServerWriteReactor<::tensorboard::data::ReadBlobResponse>* TensorBoardService::ReadBlob(
    grpc::CallbackServerContext* context, const ::tensorboard::data::ReadBlobRequest* request) {
  absl::Status status = queries_->Admit("tensorboard.ReadBlob", *context, {}).status();
  if (status.ok()) {
    status = absl::NotFoundError(
        absl::StrCat("blob_key: no blob \"", request->blob_key(), "\": none are stored"));
  }
  return new NoBlob(errors::ToGrpcStatus(ForTensorBoard(status), queries_->NextSpread()));
}

}  // namespace tacho::server
