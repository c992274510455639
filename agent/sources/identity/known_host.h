// What is known of this machine by now, for all who tell of it.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/sources/identity/host_facts.h"

namespace tacho::agent {

// Thread-safe.
class KnownHost {
 public:
  explicit KnownHost(HostFacts facts) : facts_(std::move(facts)) {}

  HostFacts Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return facts_;
  }
  void Set(HostFacts facts) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    facts_ = std::move(facts);
  }

 private:
  mutable absl::Mutex mutex_;
  HostFacts facts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tacho::agent
