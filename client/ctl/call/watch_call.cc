#include "client/ctl/call/watch_call.h"

#include <utility>

namespace tacho::ctl {

template <typename Response>
StreamCall<Response>::StreamCall(std::unique_ptr<grpc::ClientContext> context, const Start& start)
    : context_(std::move(context)), reader_(start(context_.get(), &queue_)) {}

template <typename Response>
StreamCall<Response>::~StreamCall() {
  if (state_ != State::kEnded) {
    context_->TryCancel();
    bool ok = false;
    // A pending operation has to come back before the queue is destroyed.
    if (state_ != State::kIdle) Wait(absl::InfiniteDuration(), &ok);
    End();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

template <typename Response>
bool StreamCall<Response>::Wait(absl::Duration most, bool* ok) {
  void* tag = nullptr;
  if (most == absl::InfiniteDuration()) return queue_.Next(&tag, ok);
  return queue_.AsyncNext(&tag, ok, absl::ToChronoTime(absl::Now() + most)) !=
         grpc::CompletionQueue::TIMEOUT;
}

template <typename Response>
typename StreamCall<Response>::Result StreamCall<Response>::End() {
  state_ = State::kEnded;
  reader_->Finish(&status_, nullptr);
  bool ok = false;
  Wait(absl::InfiniteDuration(), &ok);
  return Result::kEnded;
}

template <typename Response>
typename StreamCall<Response>::Result StreamCall<Response>::Next(Response* response,
                                                                 absl::Duration most) {
  while (state_ != State::kEnded) {
    if (state_ == State::kIdle) {
      reader_->Read(&response_, nullptr);
      state_ = State::kReading;
    }
    bool ok = false;
    if (!Wait(most, &ok)) return Result::kTimeout;
    if (!ok) return End();
    const bool started = state_ == State::kStarting;
    state_ = State::kIdle;
    if (started) continue;
    *response = std::move(response_);
    return Result::kMessage;
  }
  return Result::kEnded;
}

template class StreamCall<v1::WatchResponse>;
template class StreamCall<v1::WatchConditionsResponse>;

}  // namespace tacho::ctl
