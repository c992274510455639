// The answer to one Watch or WatchConditions call. A worker thread writes it, which may wait, and
// later the thread that serves all watches, which may not.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/query/read/query_control.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// How often a thread that serves watches looks at clocks, and at the rights of callers.
inline constexpr absl::Duration kWatchTick = absl::Milliseconds(500);
inline constexpr absl::Duration kWatchRecheck = absl::Seconds(5);
// How long a client that reads slowly may take for its last message before it is cut off.
inline constexpr absl::Duration kWatchGrace = absl::Seconds(30);

// Thread-safe. Lives until gRPC is done with it and nobody else holds it.
template <typename Response>
class BasicWatchStream final : public grpc::ServerWriteReactor<Response> {
 public:
  struct Options {
    grpc::CallbackServerContext* context = nullptr;
    absl::Duration timeout;  // How long the worker that writes may wait.
    const std::atomic<bool>* draining = nullptr;
    // Called when there is room again after HasRoom() said no, and when the stream has ended.
    std::function<void()> on_event;
    // Called once, with what the stream ends with.
    std::function<void(const absl::Status&)> on_end;
    std::function<void()> on_done;  // Called once: gRPC is done with it.
    uint64_t number = 0;            // Spreads the retries of refused clients.
  };
  static std::shared_ptr<BasicWatchStream> Create(Options options);

  QueryControl& control() { return control_; }

  // Queues a message. Waits while the queue is long.
  //   the status that the stream has ended with, or that of control().Check()
  absl::Status Write(Response response) ABSL_LOCKS_EXCLUDED(mutex_);
  // Queues a message without waiting. Call after HasRoom(). Does nothing once the stream has ended.
  void Post(Response response) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the stream after the message that is with gRPC now; the first call counts.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether gRPC has the end. It gets that only once the client has taken the message before it.
  bool finished() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up on that message. Call after End().
  void CutOff() ABSL_LOCKS_EXCLUDED(mutex_);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit BasicWatchStream(Options options);
  // Returns whether the caller has to start a write.
  bool Queue(Response response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the caller has to finish the call, which has ended.
  bool MayFinish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartFirstWrite() ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishNow() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  QueryControl control_;
  std::shared_ptr<BasicWatchStream> self_;  // Until OnDone().
  mutable absl::Mutex mutex_;
  absl::CondVar written_;
  std::deque<Response> queue_ ABSL_GUARDED_BY(mutex_);  // While writing, the first is with gRPC.
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // Or about to.
  bool starved_ ABSL_GUARDED_BY(mutex_) = false;  // HasRoom() said no.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // Finish() was called or is about to be.
};

using WatchStream = BasicWatchStream<v1::WatchResponse>;
using ConditionWatchStream = BasicWatchStream<v1::WatchConditionsResponse>;

}  // namespace tacho::server::query
