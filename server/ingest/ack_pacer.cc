#include "server/ingest/ack_pacer.h"

#include <utility>

namespace tacho::server::ingest {

AckPacer::AckPacer(absl::Duration tick) : tick_(tick), thread_([this] { Run(); }) {}

AckPacer::~AckPacer() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AckPacer::Schedule(std::shared_ptr<Paced> stream) {
  absl::MutexLock lock(&mutex_);
  scheduled_.push_back(std::move(stream));
}

AckPacer::Streams AckPacer::Take() {
  absl::MutexLock lock(&mutex_);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !scheduled_.empty();
  };
  mutex_.Await(absl::Condition(&ready));
  return stopping_ ? Streams() : std::exchange(scheduled_, Streams());
}

void AckPacer::Run() {
  while (true) {
    const Streams streams = Take();
    if (streams.empty()) return;
    for (const auto& stream : streams) stream->OnTick();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), tick_);
  }
}

}  // namespace tacho::server::ingest
