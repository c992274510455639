#include "server/http/readiness.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {

void Readiness::SetReady() {
  absl::MutexLock lock(&mutex_);
  why_not_.clear();
}

void Readiness::SetNotReady(absl::string_view reason) {
  TACHO_CHECK(!reason.empty());
  absl::MutexLock lock(&mutex_);
  why_not_ = std::string(reason);
}

void Readiness::SetHeldBy(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  held_by_ = std::string(reason);
}

void Readiness::SetClockDoubt(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  clock_doubt_ = std::string(reason);
}

absl::Status Readiness::Check() const {
  absl::MutexLock lock(&mutex_);
  if (!why_not_.empty()) {
    return errors::ErrorOf(errors::Failure::kDraining, absl::StrCat("not ready: ", why_not_));
  }
  if (!held_by_.empty()) {
    return errors::ErrorOf(errors::Failure::kDiskRefuses, absl::StrCat("not ready: ", held_by_));
  }
  if (clock_doubt_.empty()) return absl::OkStatus();
  return errors::ErrorOf(errors::Failure::kClockDoubted, absl::StrCat("not ready: ", clock_doubt_));
}

bool Readiness::IsHeld() const {
  absl::MutexLock lock(&mutex_);
  return !held_by_.empty();
}

std::string Readiness::WhyNotReady() const {
  absl::MutexLock lock(&mutex_);
  if (!why_not_.empty()) return why_not_;
  return held_by_.empty() ? clock_doubt_ : held_by_;
}

}  // namespace tacho::server::http
