// The collector, asked through gRPC.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/query_asker.h"

namespace tacho::bench {

class CollectorAsker final : public QueryAsker {
 public:
  explicit CollectorAsker(const std::string& address);

  // Requests of one kind, "range", "latest", "compare" or "health", in protobuf's text format, a
  // line each.
  absl::Status Add(const std::string& kind, const std::string& requests);
  // To be called once, before the first Ask().
  absl::Status Connect();

  absl::Status Ask() override;
  absl::StatusOr<Answer> Decode() override;

 private:
  struct Call {
    std::string method;
    grpc::ByteBuffer request;
    // Parses a message of the answer and counts what is in it.
    std::function<bool(grpc::ByteBuffer*, Answer*)> decode;
    std::vector<grpc::ByteBuffer> messages;  // The answer's.
  };

  absl::Status Ask(Call* call);

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<Call> calls_;
};

}  // namespace tacho::bench
