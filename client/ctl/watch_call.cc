#include "client/ctl/watch_call.h"

#include <utility>

namespace tacho::ctl {

WatchCall::WatchCall(v1::Query::Stub& stub, std::unique_ptr<grpc::ClientContext> context,
                     const v1::WatchRequest& request)
    : context_(std::move(context)),
      reader_(stub.AsyncWatch(context_.get(), request, &queue_, nullptr)) {}

WatchCall::~WatchCall() {
  if (state_ != State::kEnded) {
    context_->TryCancel();
    bool ok = false;
    // What was begun has to come back before the queue may go.
    if (state_ != State::kIdle) Wait(absl::InfiniteFuture(), &ok);
    End();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool WatchCall::Wait(absl::Time until, bool* ok) {
  void* tag = nullptr;
  if (until == absl::InfiniteFuture()) return queue_.Next(&tag, ok);
  return queue_.AsyncNext(&tag, ok, absl::ToChronoTime(until)) != grpc::CompletionQueue::TIMEOUT;
}

WatchCall::Result WatchCall::End() {
  state_ = State::kEnded;
  reader_->Finish(&status_, nullptr);
  bool ok = false;
  Wait(absl::InfiniteFuture(), &ok);
  return Result::kEnded;
}

WatchCall::Result WatchCall::Next(v1::WatchResponse* response, absl::Time until) {
  while (state_ != State::kEnded) {
    if (state_ == State::kIdle) {
      reader_->Read(&response_, nullptr);
      state_ = State::kReading;
    }
    bool ok = false;
    if (!Wait(until, &ok)) return Result::kTimeout;
    if (!ok) return End();
    const bool started = state_ == State::kStarting;
    state_ = State::kIdle;
    if (started) continue;
    *response = std::move(response_);
    return Result::kMessage;
  }
  return Result::kEnded;
}

}  // namespace tacho::ctl
