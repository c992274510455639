// A unary gRPC call without a stub, for requests and answers that no stub makes.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "tests/support/patient_context.h"

namespace tacho {

// Calls the method, "/tacho.v1.Query/GetJob" for instance, with a request of these bytes, whatever
// its type. Returns the bytes of the answer; "" if the call failed.
inline std::pair<grpc::Status, std::string> CallBytes(std::shared_ptr<grpc::Channel> channel,
                                                      const std::string& method,
                                                      const std::string& request) {
  grpc::GenericStub stub(std::move(channel));
  PatientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(request);
  const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->Finish(&answer, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice bytes;
  if (!status.ok() || !answer.DumpToSingleSlice(&bytes).ok()) return {status, ""};
  return {status, std::string(bytes.begin(), bytes.end())};
}

}  // namespace tacho
