#include "server/cluster/asking/forward_tensorboard.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/util/time_util.h"
#include "server/cluster/asking/forward_reactors.h"
#include "server/tensorboard/experiment_size.h"

namespace tacho::server::cluster {
namespace {

namespace tb = ::tensorboard::data;

// What a member without a job of the experiment answers.
bool SaysNothingMatches(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::PERMISSION_DENIED:  // Such a job would not be the caller's.
    case grpc::StatusCode::INVALID_ARGUMENT:   // The name of a job elsewhere, and no pattern.
      return true;
    default:
      return false;
  }
}

// Leaves the answers that are OK. An error, if none is or a member could not answer.
template <typename Response>
grpc::Status KeepAnswers(std::vector<Answered<Response>>* answers) {
  for (const auto& one : *answers) {
    if (!one.status.ok() && !SaysNothingMatches(one.status)) return one.status;
  }
  const auto failed = [](const auto& one) { return !one.status.ok(); };
  if (std::all_of(answers->begin(), answers->end(), failed)) {
    // That of a member which knows a similar name, if one does.
    const auto helps = [](const auto& one) {
      return absl::StrContains(one.status.error_message(), "did you mean");
    };
    const auto best = std::find_if(answers->begin(), answers->end(), helps);
    return best == answers->end() ? answers->front().status : best->status;
  }
  std::erase_if(*answers, failed);
  return grpc::Status::OK;
}

const std::string& NameOf(const tb::Run& run) { return run.name(); }
template <typename RunEntry>
const std::string& NameOf(const RunEntry& run) {
  return run.run_name();
}

// Adds the runs of jobs that the member keeps. A run is named job/attempt. Split jobs are left out:
// the steps of a run would have to come from all members.
template <typename Runs>
void AddRuns(const Membership& membership, uint32_t shard, Runs* from, Runs* to) {
  for (auto& run : *from) {
    const absl::string_view name = NameOf(run);
    const absl::string_view job = name.substr(0, name.rfind('/'));
    if (membership.IsSplit(job)) continue;
    if (membership.ShardOf(job) == shard) to->Add(std::move(run));
  }
}

void Add(const Membership&, Answered<tb::GetExperimentResponse>* from,
         tb::GetExperimentResponse* to) {
  using google::protobuf::util::TimeUtil;
  tb::GetExperimentResponse& one = from->response;
  if (to->data_location().empty()) {
    *to = std::move(one);
    return;
  }
  const auto sum = server::tb::SizeFromWords(to->description());
  const auto more = server::tb::SizeFromWords(one.description());
  if (sum.has_value() && more.has_value()) {
    to->set_description(server::tb::SizeInWords({.jobs = sum->jobs + more->jobs,
                                                 .runs = sum->runs + more->runs,
                                                 .left_out = sum->left_out + more->left_out}));
  }
  if (!one.has_creation_time()) return;
  if (!to->has_creation_time() || TimeUtil::TimestampToNanoseconds(one.creation_time()) <
                                      TimeUtil::TimestampToNanoseconds(to->creation_time())) {
    *to->mutable_creation_time() = one.creation_time();
  }
}

void Add(const Membership&, Answered<tb::ListPluginsResponse>* from, tb::ListPluginsResponse* to) {
  for (const tb::Plugin& plugin : from->response.plugins()) {
    const bool known = std::any_of(to->plugins().begin(), to->plugins().end(),
                                   [&](const auto& one) { return one.name() == plugin.name(); });
    if (!known) *to->add_plugins() = plugin;
  }
}

void Add(const Membership&, Answered<tb::ListBlobSequencesResponse>*,
         tb::ListBlobSequencesResponse*) {}
void Add(const Membership&, Answered<tb::ReadBlobSequencesResponse>*,
         tb::ReadBlobSequencesResponse*) {}

template <typename Response>
void Add(const Membership& membership, Answered<Response>* from, Response* to) {
  AddRuns(membership, from->shard, from->response.mutable_runs(), to->mutable_runs());
}

// A caller who is not let in hears it from the service of this collector, which says where the
// documentation of TensorBoard is.
bool AsksAll(const ForwardCalls& calls, const grpc::CallbackServerContext& context) {
  return calls.AsksAll(context) && calls.Admit(context).ok();
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AskAll(ForwardCalls* calls, const char* name,
                                 grpc::CallbackServerContext* context, const Request& request,
                                 Response* response) {
  return AnswerByAll<Request, Response>(calls, name, request, context, response,
                                        [calls](auto* answers, Response* to) {
                                          grpc::Status status = KeepAnswers(answers);
                                          if (!status.ok()) return status;
                                          for (auto& one : *answers)
                                            Add(calls->membership(), &one, to);
                                          return status;
                                        });
}

}  // namespace

grpc::ServerUnaryReactor* ForwardedTensorBoard::GetExperiment(
    grpc::CallbackServerContext* context, const tb::GetExperimentRequest* request,
    tb::GetExperimentResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->GetExperiment(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/GetExperiment", context,
                *request, response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ListPlugins(grpc::CallbackServerContext* context,
                                                            const tb::ListPluginsRequest* request,
                                                            tb::ListPluginsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ListPlugins(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ListPlugins", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ListRuns(grpc::CallbackServerContext* context,
                                                         const tb::ListRunsRequest* request,
                                                         tb::ListRunsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ListRuns(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ListRuns", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ListScalars(grpc::CallbackServerContext* context,
                                                            const tb::ListScalarsRequest* request,
                                                            tb::ListScalarsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ListScalars(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ListScalars", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ReadScalars(grpc::CallbackServerContext* context,
                                                            const tb::ReadScalarsRequest* request,
                                                            tb::ReadScalarsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ReadScalars(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ReadScalars", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ListTensors(grpc::CallbackServerContext* context,
                                                            const tb::ListTensorsRequest* request,
                                                            tb::ListTensorsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ListTensors(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ListTensors", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ReadTensors(grpc::CallbackServerContext* context,
                                                            const tb::ReadTensorsRequest* request,
                                                            tb::ReadTensorsResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ReadTensors(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ReadTensors", context, *request,
                response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ListBlobSequences(
    grpc::CallbackServerContext* context, const tb::ListBlobSequencesRequest* request,
    tb::ListBlobSequencesResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ListBlobSequences(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ListBlobSequences", context,
                *request, response);
}

grpc::ServerUnaryReactor* ForwardedTensorBoard::ReadBlobSequences(
    grpc::CallbackServerContext* context, const tb::ReadBlobSequencesRequest* request,
    tb::ReadBlobSequencesResponse* response) {
  if (!AsksAll(*calls_, *context)) return here_->ReadBlobSequences(context, request, response);
  return AskAll(calls_, "/tensorboard.data.TensorBoardDataProvider/ReadBlobSequences", context,
                *request, response);
}

}  // namespace tacho::server::cluster
