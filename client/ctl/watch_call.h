// One Watch call, read message by message with patience that the caller chooses.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::ctl {

// Not thread-safe. Made by QueryClient::Watch(), which must outlive it.
class WatchCall {
 public:
  enum class Result { kMessage, kTimeout, kEnded };

  // `context` is prepared for the call.
  WatchCall(v1::Query::Stub& stub, std::unique_ptr<grpc::ClientContext> context,
            const v1::WatchRequest& request);
  // Cancels the call if it has not ended.
  ~WatchCall();
  WatchCall(const WatchCall&) = delete;
  WatchCall& operator=(const WatchCall&) = delete;

  // Waits until `until` for the next message. After kTimeout the message still comes with a later
  // call; after kEnded none does.
  Result Next(v1::WatchResponse* response, absl::Time until);

  // How the call ended; set by kEnded.
  const grpc::Status& status() const { return status_; }

 private:
  // False: nothing came back by then.
  bool Wait(absl::Time until, bool* ok);
  Result End();

  enum class State { kStarting, kIdle, kReading, kEnded };

  grpc::CompletionQueue queue_;
  const std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::WatchResponse>> reader_;
  State state_ = State::kStarting;
  v1::WatchResponse response_;
  grpc::Status status_;
};

}  // namespace tacho::ctl
