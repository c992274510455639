#include "server/query/watch_stream.h"

#include <utility>

#include "server/grpc_status.h"

namespace tacho::server {
namespace {

constexpr size_t kQueueBytes = size_t{256} << 10;
constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

}  // namespace

std::shared_ptr<WatchStream> WatchStream::Create(Options options) {
  std::shared_ptr<WatchStream> stream(new WatchStream(std::move(options)));
  stream->self_ = stream;
  return stream;
}

WatchStream::WatchStream(Options options)
    : options_(std::move(options)), control_(options_.timeout, options_.now, options_.draining) {}

bool WatchStream::Queue(v1::WatchResponse response) {
  queued_bytes_ += response.ByteSizeLong();
  queue_.push_back(std::move(response));
  return !std::exchange(writing_, true);
}

void WatchStream::StartFirstWrite() {
  const v1::WatchResponse* first = nullptr;
  grpc::WriteOptions how;
  {
    absl::MutexLock lock(&mutex_);
    first = &queue_.front();                       // Stays: only OnWriteDone() removes it.
    if (queue_.size() > 1) how.set_buffer_hint();  // Small ones leave together.
  }
  StartWrite(first, how);
}

absl::Status WatchStream::Write(v1::WatchResponse response) {
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
    written_.WaitWithTimeout(&mutex_, kLookAgain);
  }
}

void WatchStream::Post(v1::WatchResponse response) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value() || !Queue(std::move(response))) return;
  }
  StartFirstWrite();
}

bool WatchStream::HasRoom() {
  absl::MutexLock lock(&mutex_);
  starved_ = queued_bytes_ >= kQueueBytes;
  return !starved_;
}

void WatchStream::OnWriteDone(bool ok) {
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

void WatchStream::OnCancel() {
  control_.Cancel();
  End(absl::CancelledError("the client has gone"));
}

bool WatchStream::MayFinish() {
  if (writing_ || finishing_) return false;
  return finishing_ = true;
}

void WatchStream::End(const absl::Status& status) {
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

void WatchStream::FinishNow() {
  grpc::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = ToGrpcStatus(*end_, options_.number);
  }
  Finish(status);
}

bool WatchStream::ended() const {
  absl::MutexLock lock(&mutex_);
  return end_.has_value();
}

bool WatchStream::finished() const {
  absl::MutexLock lock(&mutex_);
  return finishing_;
}

void WatchStream::CutOff() {
  absl::MutexLock lock(&mutex_);
  // The context is there until the call is finished, for which this lock is needed.
  if (end_.has_value() && !finishing_) options_.context->TryCancel();
}

void WatchStream::OnDone() {
  const std::shared_ptr<WatchStream> self = std::move(self_);
  options_.on_done();
}

}  // namespace tacho::server
