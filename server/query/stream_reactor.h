// A stream of answers, written from a worker thread one message at a time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/query/query_control.h"

namespace tacho::server {

// Deletes itself when gRPC is done with it, which is some time after Finish(): the worker touches
// neither it nor its control afterwards.
template <typename Response>
class StreamReactor final : public grpc::ServerWriteReactor<Response> {
 public:
  StreamReactor(grpc::CallbackServerContext* context, absl::Duration timeout,
                std::function<absl::Time()> now, const std::atomic<bool>* draining)
      : context_(context), control_(timeout, std::move(now), draining) {}

  QueryControl& control() { return control_; }

  // Writes and waits until the message has left, or the client has gone, or the query is out of
  // time; the status is that of control().Check() in the latter cases. A client that stopped
  // reading is cut off at the deadline.
  absl::Status Write(const Response& response) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      writing_ = true;
    }
    this->StartWrite(&response);
    absl::MutexLock lock(&mutex_);
    absl::Status status = WaitWhileAllowed();
    if (!status.ok() && writing_) {
      // Most clients take the piece in hand and then read why it was the last.
      written_.WaitWithTimeout(&mutex_, kGrace);
      if (writing_) context_->TryCancel();
    }
    while (writing_) written_.Wait(&mutex_);  // Until then gRPC reads the message.
    if (!status.ok()) return status;
    return ok_ ? absl::OkStatus() : absl::CancelledError("the client has gone");
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    ok_ = ok;
    written_.Signal();
  }
  void OnCancel() override { control_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  static constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
  static constexpr absl::Duration kGrace = absl::Seconds(1);

  // Until the write is over or the query has to stop.
  absl::Status WaitWhileAllowed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (;;) {
      absl::Status status = control_.Check();
      if (!status.ok() || !writing_) return status;
      written_.WaitWithTimeout(&mutex_, kLookAgain);
    }
  }

  grpc::CallbackServerContext* const context_;
  QueryControl control_;
  absl::Mutex mutex_;
  absl::CondVar written_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ok_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace tacho::server
