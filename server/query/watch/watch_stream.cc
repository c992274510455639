// Hands messages to gRPC one at a time, as it takes no more, and keeps a short queue before it. The
// stream deletes itself only when both gRPC and its writers are done with it.
#include "server/query/watch/watch_stream.h"

#include <utility>

#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {
namespace {

constexpr size_t kQueueBytes = size_t{256} << 10;
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

}  // namespace

template <typename Response>
std::shared_ptr<BasicWatchStream<Response>> BasicWatchStream<Response>::Create(Options options) {
  std::shared_ptr<BasicWatchStream> stream(new BasicWatchStream(std::move(options)));
  stream->self_ = stream;
  return stream;
}

template <typename Response>
BasicWatchStream<Response>::BasicWatchStream(Options options)
    : options_(std::move(options)), control_(options_.timeout, MonotonicNow, options_.draining) {}

template <typename Response>
bool BasicWatchStream<Response>::Queue(Response response) {
  queued_bytes_ += response.ByteSizeLong();
  queue_.push_back(std::move(response));
  return !std::exchange(writing_, true);
}

template <typename Response>
void BasicWatchStream<Response>::StartFirstWrite() {
  const Response* first = nullptr;
  grpc::WriteOptions how;
  {
    absl::MutexLock lock(&mutex_);
    first = &queue_.front();                       // Stays: only OnWriteDone() removes it.
    if (queue_.size() > 1) how.set_buffer_hint();  // Small ones leave together.
  }
  this->StartWrite(first, how);
}

template <typename Response>
absl::Status BasicWatchStream<Response>::Write(Response response) {
  bool starts = false;
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value()) return *end_;
    starts = Queue(std::move(response));
  }
  if (starts) StartFirstWrite();
  absl::MutexLock lock(&mutex_);
  for (;;) {
    if (end_.has_value()) return *end_;
    absl::Status status = control_.Check();
    if (!status.ok() || queued_bytes_ <= kQueueBytes) return status;
    WaitFor(&written_, &mutex_, kLookAgain);
  }
}

template <typename Response>
void BasicWatchStream<Response>::Post(Response response) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value() || !Queue(std::move(response))) return;
  }
  StartFirstWrite();
}

template <typename Response>
bool BasicWatchStream<Response>::HasRoom() {
  absl::MutexLock lock(&mutex_);
  starved_ = queued_bytes_ >= kQueueBytes;
  return !starved_;
}

template <typename Response>
void BasicWatchStream<Response>::OnWriteDone(bool ok) {
  bool goes_on = false;
  bool finish = false;
  bool tell = false;
  {
    absl::MutexLock lock(&mutex_);
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    writing_ = false;
    if (end_.has_value()) {
      finish = MayFinish();
    } else if (ok) {
      goes_on = writing_ = ok && !queue_.empty();
      tell = starved_ && queued_bytes_ < kQueueBytes / 2;
      if (tell) starved_ = false;
    }
    written_.Signal();
  }
  if (finish) return FinishNow();
  if (!ok) return End(absl::CancelledError("the client has gone"));
  if (goes_on) StartFirstWrite();
  if (tell) options_.on_event();
}

template <typename Response>
void BasicWatchStream<Response>::OnCancel() {
  control_.Cancel();
  End(absl::CancelledError("the client has gone"));
}

template <typename Response>
bool BasicWatchStream<Response>::MayFinish() {
  if (writing_ || finishing_) return false;
  return finishing_ = true;
}

template <typename Response>
void BasicWatchStream<Response>::End(const absl::Status& status) {
  bool finish = false;
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    end_ = status;
    while (queue_.size() > (writing_ ? 1 : 0)) {
      queued_bytes_ -= queue_.back().ByteSizeLong();
      queue_.pop_back();
    }
    finish = MayFinish();
    written_.Signal();
  }
  options_.on_end(status);
  const auto on_event = options_.on_event;  // `this` may be gone after the next line.
  if (finish) FinishNow();
  on_event();
}

template <typename Response>
void BasicWatchStream<Response>::FinishNow() {
  grpc::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = errors::ToGrpcStatus(*end_, options_.number);
  }
  this->Finish(status);
}

template <typename Response>
bool BasicWatchStream<Response>::ended() const {
  absl::MutexLock lock(&mutex_);
  return end_.has_value();
}

template <typename Response>
bool BasicWatchStream<Response>::finished() const {
  absl::MutexLock lock(&mutex_);
  return finishing_;
}

template <typename Response>
void BasicWatchStream<Response>::CutOff() {
  absl::MutexLock lock(&mutex_);
  // The context is there until the call is finished, for which this lock is needed.
  if (end_.has_value() && !finishing_) options_.context->TryCancel();
}

template <typename Response>
void BasicWatchStream<Response>::OnDone() {
  const std::shared_ptr<BasicWatchStream> self = std::move(self_);
  options_.on_done();
}

template class BasicWatchStream<v1::WatchResponse>;
template class BasicWatchStream<v1::WatchConditionsResponse>;

}  // namespace tacho::server::query
