#include "storage/bucket/credentials.h"

#include <algorithm>
#include <utility>

namespace tacho::storage {

absl::StatusOr<Credentials> CredentialKeeper::Get() {
  {
    absl::MutexLock lock(&mutex_);
    if (held_ && (fetching_ || now_() < renew_at_)) return *held_;
    if (fetching_) {
      mutex_.Await(absl::Condition(this, &CredentialKeeper::IsIdle));
      if (held_) return *held_;
      return failure_;
    }
    fetching_ = true;
  }
  return Take(fetch_());
}

absl::StatusOr<Credentials> CredentialKeeper::Take(absl::StatusOr<Credentials> fetched) {
  absl::MutexLock lock(&mutex_);
  fetching_ = false;
  failure_ = fetched.status();
  if (fetched.ok()) {
    held_ = *std::move(fetched);
    // What lives for less than ten minutes is renewed half way.
    renew_at_ = now_() + std::max(held_->lifetime - kRenewBefore, held_->lifetime / 2);
  } else if (held_) {
    renew_at_ = now_() + kPause;
  } else {
    return failure_;
  }
  return *held_;
}

void CredentialKeeper::Refuse(const Credentials& used) {
  absl::MutexLock lock(&mutex_);
  if (!held_ || held_->key_id != used.key_id || held_->bearer != used.bearer) return;
  // After a failed renewal the pause holds.
  if (failure_.ok()) renew_at_ = absl::InfinitePast();
}

}  // namespace tacho::storage
