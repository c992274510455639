// A streaming call that is read message by message, each with a deadline of the caller's.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::ctl {

// Not thread-safe. QueryClient makes it and must outlive it.
template <typename Response>
class StreamCall {
 public:
  enum class Result { kMessage, kTimeout, kEnded };
  using Reader = std::unique_ptr<grpc::ClientAsyncReader<Response>>;
  using Start = std::function<Reader(grpc::ClientContext*, grpc::CompletionQueue*)>;

  // `start` starts the call, for which `context` is prepared, with the null tag.
  StreamCall(std::unique_ptr<grpc::ClientContext> context, const Start& start);
  // Cancels the call if it has not ended.
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // Waits at most this long for the next message. After kTimeout, a later call may still return it;
  // after kEnded, none comes.
  Result Next(Response* response, absl::Duration most);

  // How the call ended; set once Next() returns kEnded.
  const grpc::Status& status() const { return status_; }

 private:
  // False if nothing came back in time.
  bool Wait(absl::Duration most, bool* ok);
  Result End();

  enum class State { kStarting, kIdle, kReading, kEnded };

  grpc::CompletionQueue queue_;
  const std::unique_ptr<grpc::ClientContext> context_;
  Reader reader_;
  State state_ = State::kStarting;
  Response response_;
  grpc::Status status_;
};

using WatchCall = StreamCall<v1::WatchResponse>;
using WatchConditionsCall = StreamCall<v1::WatchConditionsResponse>;

}  // namespace tacho::ctl
