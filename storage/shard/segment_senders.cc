#include "storage/shard/segment_senders.h"

#include <algorithm>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/timed_wait.h"

namespace tacho::storage {

SegmentSenders::SegmentSenders(ShardLog* log, Options options)
    : log_(log), options_(std::move(options)) {
  TACHO_CHECK(log_ != nullptr && options_.threads > 0);
  for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Send(); });
}

void SegmentSenders::Stop() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  log_->Close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void SegmentSenders::Send() {
  absl::Duration pause = options_.first_pause;
  while (log_->AwaitWork()) {
    switch (log_->SendOne()) {
      case ShardLog::Sent::kNothing:  // Another thread was quicker.
        continue;
      case ShardLog::Sent::kUnknown:
        if (IsStoppedWithin(pause)) return;
        pause = std::min(2 * pause, options_.longest_pause);
        continue;
      case ShardLog::Sent::kStored:
      case ShardLog::Sent::kFenced:
        pause = options_.first_pause;
        if (options_.on_progress) options_.on_progress();
        continue;
    }
  }
}

bool SegmentSenders::IsStoppedWithin(absl::Duration pause) {
  const absl::MutexLock lock(&mutex_);
  return AwaitFor(&mutex_, absl::Condition(&stopping_), pause);
}

}  // namespace tacho::storage
