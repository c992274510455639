// Answers of queries, made by a worker thread and sent by gRPC's.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "server/query/read/query_control.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::query {

// Deletes itself when gRPC is done with it, which is some time after Finish(): the worker touches
// neither it nor its control afterwards.
class UnaryReactor final : public grpc::ServerUnaryReactor {
 public:
  UnaryReactor(absl::Duration timeout, const std::atomic<bool>* draining)
      : control_(timeout, MonotonicNow, draining) {}

  const QueryControl& control() const { return control_; }

  void OnCancel() override { control_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  QueryControl control_;
};

// The newest message is held back until there is another, or the end, with which it then leaves: an
// answer of one message is one write. Deletes itself when gRPC is done with it and End() was
// called: the worker touches neither it nor its control afterwards.
template <typename Response>
class StreamReactor final : public grpc::ServerWriteReactor<Response> {
 public:
  StreamReactor(grpc::CallbackServerContext* context, absl::Duration timeout,
                const std::atomic<bool>* draining)
      : context_(context), control_(timeout, MonotonicNow, draining) {}

  QueryControl& control() { return control_; }

  // Tells the client that a worker is at its call. Before the first Write(), once at most.
  void SendHeaders() { this->StartSendInitialMetadata(); }

  // Queues the message before, if there was one, and keeps this one. Waits while more than some
  // hundred kilobytes wait to be sent, so that a client that stops reading stops the query.
  //   CANCELLED           the client has gone.
  //   others              as control().Check(); nothing more is to be written.
  absl::Status Write(Response response) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!std::exchange(holds_, true)) {
      held_ = std::move(response);
      return absl::OkStatus();
    }
    std::swap(held_, response);
    Response* first = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      if (!ok_) return absl::CancelledError("the client has gone");
      const size_t bytes = response.ByteSizeLong();
      queued_bytes_ += bytes;
      queue_.push_back({std::move(response), bytes});
      if (queue_.size() == 1) first = &queue_.front().response;
    }
    if (first != nullptr) this->StartWrite(first);
    absl::MutexLock lock(&mutex_);
    absl::Status status = WaitWhileAllowed(kQueueBytes);
    if (!status.ok()) return status;
    return ok_ ? absl::OkStatus() : absl::CancelledError("the client has gone");
  }

  // To be called once, after the last Write() and before End(): waits until all messages but the
  // one held back have left, or the client has gone, or the query has to stop; the status is that
  // of control().Check() in the last case. A client that stopped reading is cut off at the
  // deadline. If the query `succeeded`, the end follows the messages without waiting for End(), and
  // `before_end` is called before it, on one of gRPC's threads.
  absl::Status Flush(bool succeeded, const std::function<void()>& before_end)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    TACHO_CHECK(before_end_ == nullptr && !ended_);  // Once only.
    end_follows_ = succeeded && holds_ && !queue_.empty();
    before_end_ = end_follows_ ? &before_end : nullptr;
    absl::Status status = WaitWhileAllowed(0);
    while (ending_ && !ended_) written_.Wait(&mutex_);
    if (ended_) return absl::OkStatus();
    end_follows_ = false;
    if (!status.ok()) holds_ = false;
    if (!status.ok() && !queue_.empty()) {
      queue_.erase(queue_.begin() + 1, queue_.end());  // The first is with gRPC.
      // Most clients take the piece in hand and then read why it was the last.
      WaitFor(&written_, &mutex_, kGrace);
      if (!queue_.empty()) context_->TryCancel();
    }
    while (!queue_.empty()) written_.Wait(&mutex_);
    if (!status.ok()) return status;
    if (ok_) return absl::OkStatus();
    holds_ = false;
    return absl::CancelledError("the client has gone");
  }

  // Sends what is held back, and the status. Instead of Finish(). After a Flush() that ended the
  // call the status is OK.
  void End(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!HasEnded()) {
      if (holds_) {
        WriteLast(status);
      } else {
        this->Finish(status);
      }
    }
    Release();
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (end_.has_value()) return this->Finish(*end_);
    Response* next = nullptr;
    bool last = false;
    const std::function<void()>* before_end = nullptr;
    grpc::WriteOptions how;
    {
      absl::MutexLock lock(&mutex_);
      TACHO_CHECK(!queue_.empty());
      ok_ = ok_ && ok;
      if (ok) {
        queued_bytes_ -= queue_.front().bytes;
        queue_.pop_front();
      } else {
        queue_.clear();
        queued_bytes_ = 0;
      }
      if (!queue_.empty()) next = &queue_.front().response;
      if (queue_.size() > 1) how.set_buffer_hint();  // Small ones leave together.
      last = end_follows_ && ok_ && queue_.empty();
      ending_ = last;
      before_end = before_end_;
      written_.Signal();
    }
    if (last) {
      // The worker, whose function it is, waits in Flush() until ended_ is set.
      (*before_end)();
      absl::MutexLock lock(&mutex_);
      ended_ = true;
      written_.Signal();
    }
    // A worker that sees the queue empty may finish the call, unless it is ended here: what is
    // touched below is not the worker's.
    if (next != nullptr) this->StartWrite(next, how);
    if (last) WriteLast(grpc::Status::OK);
  }
  void OnCancel() override { control_.Cancel(); }
  void OnDone() override { Release(); }

 private:
  static constexpr size_t kQueueBytes = size_t{512} << 10;
  static constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
  static constexpr absl::Duration kGrace = absl::Seconds(1);

  struct Queued {
    Response response;
    size_t bytes = 0;
  };

  // Sends the message that is held back, and the status behind it.
  void WriteLast(const grpc::Status& status) {
    if (!security::IsInProcess(*context_)) {
      return this->StartWriteAndFinish(&held_, grpc::WriteOptions(), status);
    }
    // Within a process, gRPC 1.51 loses a message that leaves together with the status before the
    // client reads on.
    end_ = status;
    this->StartWrite(&held_);
  }

  bool HasEnded() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ended_;
  }

  // By the worker and by gRPC, in any order.
  void Release() {
    if (--users_ == 0) delete this;
  }

  // Until no more than `bytes` are queued or the query has to stop.
  absl::Status WaitWhileAllowed(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (;;) {
      absl::Status status = control_.Check();
      if (!status.ok() || queued_bytes_ <= bytes) return status;
      WaitFor(&written_, &mutex_, kLookAgain);
    }
  }

  grpc::CallbackServerContext* const context_;
  QueryControl control_;
  std::atomic<int> users_ = 2;
  // The worker's, and gRPC's once the call has ended.
  Response held_;
  bool holds_ = false;
  std::optional<grpc::Status> end_;  // For after the write that runs.
  absl::Mutex mutex_;
  absl::CondVar written_;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);  // The first is with gRPC.
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ok_ ABSL_GUARDED_BY(mutex_) = true;
  bool end_follows_ ABSL_GUARDED_BY(mutex_) = false;  // The held message is sent after the queue.
  const std::function<void()>* before_end_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Not owned.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;  // OnWriteDone() calls before_end_.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // By OnWriteDone().
};

}  // namespace tacho::server::query
