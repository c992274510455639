#include "server/ingest/pending_bytes.h"

#include <utility>
#include <vector>

namespace tacho::server::ingest {

void PendingBytes::Remove(uint64_t bytes) {
  const uint64_t left = bytes_.fetch_sub(bytes) - bytes;
  if (waiting_.load() == 0 || IsFull()) return;
  // With nothing pending nobody else would come to wake the rest.
  Wake(left == 0 ? SIZE_MAX : kWokenAtOnce);
}

void PendingBytes::AwaitRoom(std::weak_ptr<Paced> stream) {
  {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(stream));
    waiting_ = queue_.size();
  }
  // What was pending may have left before the stream was in the queue.
  if (!IsFull()) Wake(kWokenAtOnce);
}

void PendingBytes::Wake(size_t most) {
  std::vector<std::shared_ptr<Paced>> woken;
  {
    absl::MutexLock lock(&mutex_);
    while (!queue_.empty() && woken.size() < most) {
      if (auto live = queue_.front().lock()) woken.push_back(std::move(live));
      queue_.pop_front();
    }
    waiting_ = queue_.size();
  }
  for (auto& stream : woken) options_.pacer->Schedule(std::move(stream));
}

}  // namespace tacho::server::ingest
