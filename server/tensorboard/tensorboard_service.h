// TensorBoard's data provider over gRPC: admits a call as one of Query, finds it a worker there and
// translates statuses. The other files of this folder decide the answers, without gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "interop/tensorboard_data_provider.grpc.pb.h"
#include "server/query/query_service.h"
#include "server/tensorboard/experiment.h"

namespace tacho::server {

// Returns the status that TensorBoard gets. It shows a person the texts of INVALID_ARGUMENT,
// NOT_FOUND and PERMISSION_DENIED alone, so a limit becomes the first of them and missing
// credentials the last; every other status stays as it is.
absl::Status ForTensorBoard(const absl::Status& status);

// Thread-safe. A call is a query: it needs the role read, sees the jobs of its caller, takes one of
// query.max_concurrent workers, ends at query.timeout, and is drained and counted by `queries`.
class TensorBoardService final
    : public ::tensorboard::data::TensorBoardDataProvider::CallbackService {
 public:
  // Not owned; must outlive the service.
  explicit TensorBoardService(query::QueryService* queries) : queries_(queries) {}

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
  // There are none: requests are checked, answers are empty, and a key names no blob.
  grpc::ServerUnaryReactor* ListBlobSequences(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ListBlobSequencesRequest* request,
      ::tensorboard::data::ListBlobSequencesResponse* response) override;
  grpc::ServerUnaryReactor* ReadBlobSequences(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ReadBlobSequencesRequest* request,
      ::tensorboard::data::ReadBlobSequencesResponse* response) override;
  grpc::ServerWriteReactor<::tensorboard::data::ReadBlobResponse>* ReadBlob(
      grpc::CallbackServerContext* context,
      const ::tensorboard::data::ReadBlobRequest* request) override;

 private:
  // Runs work(const tb::World&), which fills the answer, on a worker; `method` is a literal.
  template <typename Work>
  grpc::ServerUnaryReactor* Answer(const char* method, grpc::CallbackServerContext* context,
                                   Work work);

  query::QueryService* const queries_;
};

}  // namespace tacho::server
