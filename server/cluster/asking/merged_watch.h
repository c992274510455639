// One stream without an end from those of all members.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "server/cluster/asking/forward_calls.h"

namespace tacho::server::cluster {

// Passes on what members send, in the order in which it comes. A member's next message is read when
// the one before has left. The first member whose stream ends ends the watch, with its status.
// Deletes itself when gRPC is done with it.
template <typename Request, typename Response>
class MergedWatch final : public grpc::ServerWriteReactor<Response> {
 public:
  // Makes a member's message one of the whole stream. False: it is left out. One call at a time.
  using Adapt = std::function<bool(uint32_t shard, Response* message)>;

  // `requests` by shard.
  MergedWatch(ForwardCalls* calls, const Asker& asker, std::string method,
              std::vector<Request> requests, Adapt adapt)
      : method_(std::move(method)),
        requests_(std::move(requests)),
        adapt_(std::move(adapt)),
        open_(requests_.size()) {
    for (uint32_t shard = 0; shard < requests_.size(); ++shard) {
      from_.push_back(std::make_unique<From>(this, calls, shard, asker));
    }
    for (uint32_t shard = 0; shard < requests_.size(); ++shard) {
      from_[shard]->Start(method_, &requests_[shard]);
    }
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!ok) CancelAll();
    From* written = nullptr;
    From* next = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      written = ready_.front();
      ready_.pop_front();
      if (!ready_.empty()) next = ready_.front();
    }
    if (next != nullptr) this->StartWrite(&next->message);
    // The last thing that is done here: if the read fails, it can end the watch.
    written->Next();
  }
  void OnCancel() override { CancelAll(); }
  void OnDone() override { delete this; }

 private:
  // The stream of one member. It does not end while its message waits to be written, because it
  // holds the call until a read fails.
  class From final : public grpc::ClientBidiReactor<Request, Response> {
   public:
    From(MergedWatch* to, ForwardCalls* calls, uint32_t shard, const Asker& asker)
        : to_(to), call_(calls, shard, asker) {}

    void Start(const std::string& method, const Request* request) {
      grpc::TemplatedGenericStub<Request, Response>(call_.channel())
          .PrepareBidiStreamingCall(call_.context(), method, grpc::StubOptions(), this);
      this->AddHold();
      this->StartWriteLast(request, grpc::WriteOptions());
      this->StartRead(&message);
      this->StartCall();
    }
    void Next() { this->StartRead(&message); }
    void Cancel() { call_.Cancel(); }
    uint32_t shard() const { return call_.shard(); }

    void OnReadDone(bool ok) override {
      if (!ok) return this->RemoveHold();
      to_->OnMessage(this);
    }
    void OnDone(const grpc::Status& status) override { to_->OnEnd(call_.Ended(status)); }

    Response message;

   private:
    MergedWatch* const to_;
    ForwardCalls::Call call_;
  };

  void CancelAll() {
    for (const auto& from : from_) from->Cancel();
  }

  // Writes the message that `from` has read, now or after others.
  void OnMessage(From* from) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool wanted = false;
    bool first = false;
    {
      absl::MutexLock lock(&mutex_);
      wanted = adapt_(from->shard(), &from->message);
      if (wanted) ready_.push_back(from);
      first = wanted && ready_.size() == 1;
    }
    if (first) this->StartWrite(&from->message);
    if (!wanted) from->Next();
  }

  void OnEnd(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool is_first = false;
    {
      absl::MutexLock lock(&mutex_);
      is_first = !failed_;
      if (is_first) status_ = status;
      failed_ = true;
    }
    // Before this stream counts as ended: the last one's end deletes the watch.
    if (is_first) CancelAll();
    bool is_last = false;
    grpc::Status end;
    {
      absl::MutexLock lock(&mutex_);
      is_last = --open_ == 0;
      end = status_;
    }
    if (is_last) this->Finish(end);
  }

  const std::string method_;
  const std::vector<Request> requests_;
  const Adapt adapt_;
  std::vector<std::unique_ptr<From>> from_;
  absl::Mutex mutex_;
  std::deque<From*> ready_ ABSL_GUARDED_BY(mutex_);  // The first one's message is with gRPC.
  size_t open_ ABSL_GUARDED_BY(mutex_);              // Members whose streams have not ended.
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);  // That of the member whose stream ended first.
};

}  // namespace tacho::server::cluster
