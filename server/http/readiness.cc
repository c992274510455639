#include "server/http/readiness.h"

namespace tacho::server {

void Readiness::SetReady() {
  absl::MutexLock lock(&mutex_);
  why_not_.clear();
}

void Readiness::SetNotReady(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  why_not_ = std::string(reason);
}

void Readiness::SetHeldBy(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  held_by_ = std::string(reason);
}

std::string Readiness::WhyNotReady() const {
  absl::MutexLock lock(&mutex_);
  return why_not_.empty() ? held_by_ : why_not_;
}

}  // namespace tacho::server
