#include "server/limits/job_refusals.h"

#include <algorithm>
#include <utility>

#include "server/limits/limit_text.h"

namespace tacho::server::limits {

void JobRefusals::Add(absl::string_view job, absl::string_view reason, uint64_t samples,
                      absl::Time now, absl::FunctionRef<void(JobRefusal*)> describe) {
  {
    absl::MutexLock lock(&mutex_);
    if (const auto known = jobs_.find(job); known != jobs_.end()) {
      if (const auto same = known->second.reasons.find(reason);
          same != known->second.reasons.end()) {
        known->second.samples += samples;
        known->second.last = now;
        same->second.samples += samples;
        same->second.last = now;
        return;
      }
    }
  }
  JobRefusal added{.reason = std::string(reason), .samples = samples, .last = now};
  describe(&added);  // Calls out: without the lock.
  added.example = ShortText(std::move(added.example));
  added.detail = ShortText(std::move(added.detail));
  absl::MutexLock lock(&mutex_);
  if (!jobs_.contains(job) && jobs_.size() >= kJobs) MakeRoom();
  Job& of = jobs_[job];
  of.samples += samples;
  of.last = now;
  const auto [place, fresh] = of.reasons.try_emplace(added.reason, added);
  if (fresh) return;
  place->second.samples += samples;
  place->second.last = now;
}

void JobRefusals::MakeRoom() {
  jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
    return a.second.samples < b.second.samples;
  }));
}

std::vector<JobRefusal> JobRefusals::Of(absl::string_view job) const {
  std::vector<JobRefusal> found;
  {
    absl::MutexLock lock(&mutex_);
    const auto known = jobs_.find(job);
    if (known == jobs_.end()) return found;
    for (const auto& [reason, refusal] : known->second.reasons) found.push_back(refusal);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.samples > b.samples; });
  return found;
}

uint64_t JobRefusals::SamplesOf(absl::string_view job) const {
  absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? 0 : known->second.samples;
}

std::vector<JobRefusals::RefusedJob> JobRefusals::RecentJobs(absl::Time now) const {
  std::vector<RefusedJob> recent;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, job] : jobs_) {
    if (now - job.last <= kRecent) recent.push_back({name, job.last});
  }
  return recent;
}

bool JobRefusals::IsRecent(absl::string_view job, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto known = jobs_.find(job);
  return known != jobs_.end() && now - known->second.last <= kRecent;
}

}  // namespace tacho::server::limits
