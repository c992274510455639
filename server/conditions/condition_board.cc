#include "server/conditions/condition_board.h"

#include <utility>

#include "proto/base/check.h"

namespace tacho::server::conditions {

void ConditionBoard::Put(const std::string& job, JobConditions conditions, JobConditions changes,
                         JobProfile profile) {
  std::function<void()> notify;
  {
    absl::MutexLock lock(&mutex_);
    if (conditions.empty()) {
      jobs_.erase(job);
      profiles_.erase(job);
    } else {
      profiles_[job] = std::move(profile);
      jobs_[job] = std::move(conditions);
    }
    for (JudgedConditionPtr& change : changes) {
      changes_.push_back(std::move(change));
      if (changes_.size() > kMaxChanges) changes_.pop_front();
      ++end_;
    }
    if (!changes.empty()) notify = on_change_;
  }
  if (notify) notify();
}

JobConditions ConditionBoard::Of(absl::string_view job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? JobConditions() : found->second;
}

JobConditions ConditionBoard::All(absl::FunctionRef<bool(const std::string& job)> wanted,
                                  uint64_t* position) const {
  std::map<std::string, JobConditions, std::less<>> jobs;
  {
    absl::MutexLock lock(&mutex_);
    jobs = jobs_;
    if (position != nullptr) *position = end_;
  }
  JobConditions all;
  for (auto& [job, conditions] : jobs) {
    if (!wanted(job)) continue;
    all.insert(all.end(), conditions.begin(), conditions.end());
  }
  return all;
}

std::map<std::string, JobProfile> ConditionBoard::Profiles(
    absl::FunctionRef<bool(const std::string& job)> wanted) const {
  std::map<std::string, JobProfile> profiles;
  {
    absl::MutexLock lock(&mutex_);
    profiles = profiles_;
  }
  std::erase_if(profiles, [&](const auto& one) { return !wanted(one.first); });
  return profiles;
}

absl::Status ConditionBoard::ChangesSince(uint64_t* position, JobConditions* changes) const {
  absl::MutexLock lock(&mutex_);
  TACHO_CHECK(*position <= end_);
  if (end_ - *position > changes_.size()) {
    return absl::ResourceExhaustedError("more conditions changed than a watch keeps");
  }
  changes->insert(changes->end(), changes_.end() - static_cast<std::ptrdiff_t>(end_ - *position),
                  changes_.end());
  *position = end_;
  return absl::OkStatus();
}

void ConditionBoard::SetListener(std::function<void()> on_change) {
  absl::MutexLock lock(&mutex_);
  on_change_ = std::move(on_change);
}

}  // namespace tacho::server::conditions
