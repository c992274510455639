// TensorBoard's data provider in a cluster. An experiment is a choice of jobs, which any of the
// members may keep: all are asked, and their runs make up the answer.
#pragma once

#include "grpcpp/grpcpp.h"
#include "interop/tensorboard_data_provider.grpc.pb.h"
#include "server/cluster/asking/forward_calls.h"

namespace tacho::server::cluster {

// Thread-safe. Neither `calls` nor `here` is owned; both must outlive the service.
//
// The bounds of an experiment hold for each member. A member without a job that matches is no
// error if another one has some.
class ForwardedTensorBoard final
    : public ::tensorboard::data::TensorBoardDataProvider::CallbackService {
 public:
  using Here = ::tensorboard::data::TensorBoardDataProvider::CallbackService;
  ForwardedTensorBoard(ForwardCalls* calls, Here* here) : calls_(calls), here_(here) {}

  grpc::ServerUnaryReactor* GetExperiment(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::GetExperimentRequest* request,
      ::tensorboard::data::GetExperimentResponse* response) override;
  grpc::ServerUnaryReactor* ListPlugins(
      grpc::CallbackServerContext* context, const ::tensorboard::data::ListPluginsRequest* request,
      ::tensorboard::data::ListPluginsResponse* response) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* context,
                                     const ::tensorboard::data::ListRunsRequest* request,
                                     ::tensorboard::data::ListRunsResponse* response) override;
  grpc::ServerUnaryReactor* ListScalars(
      grpc::CallbackServerContext* context, const ::tensorboard::data::ListScalarsRequest* request,
      ::tensorboard::data::ListScalarsResponse* response) override;
  grpc::ServerUnaryReactor* ReadScalars(
      grpc::CallbackServerContext* context, const ::tensorboard::data::ReadScalarsRequest* request,
      ::tensorboard::data::ReadScalarsResponse* response) override;
  grpc::ServerUnaryReactor* ListTensors(
      grpc::CallbackServerContext* context, const ::tensorboard::data::ListTensorsRequest* request,
      ::tensorboard::data::ListTensorsResponse* response) override;
  grpc::ServerUnaryReactor* ReadTensors(
      grpc::CallbackServerContext* context, const ::tensorboard::data::ReadTensorsRequest* request,
      ::tensorboard::data::ReadTensorsResponse* response) override;
  grpc::ServerUnaryReactor* ListBlobSequences(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ListBlobSequencesRequest* request,
      ::tensorboard::data::ListBlobSequencesResponse* response) override;
  grpc::ServerUnaryReactor* ReadBlobSequences(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ReadBlobSequencesRequest* request,
      ::tensorboard::data::ReadBlobSequencesResponse* response) override;
  // No member has a blob.
  grpc::ServerWriteReactor<::tensorboard::data::ReadBlobResponse>* ReadBlob(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ReadBlobRequest* request) override {
    return here_->ReadBlob(context, request);
  }

 private:
  ForwardCalls* const calls_;
  Here* const here_;
};

}  // namespace tacho::server::cluster
