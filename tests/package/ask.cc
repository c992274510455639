// Makes a stub and a call from the installed headers. Nobody listens at the address: the call must
// come back UNAVAILABLE, not crash or hang.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>

#include "tacho/v1/ingest.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"

int main() {
  // Port 1 is reserved and below those that anybody can listen on.
  const auto channel = grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
  const auto query = tacho::v1::Query::NewStub(channel);
  const auto ingest = tacho::v1::Ingest::NewStub(channel);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  tacho::v1::GetJobRequest request;
  request.set_job("package");
  tacho::v1::GetJobResponse response;
  const grpc::Status status = query->GetJob(&context, request, &response);
  std::printf("%d %s\n", status.error_code(), status.error_message().c_str());
  return status.error_code() == grpc::StatusCode::UNAVAILABLE && ingest != nullptr ? 0 : 1;
}
