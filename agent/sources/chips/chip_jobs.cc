#include "agent/sources/chips/chip_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tacho::agent {
namespace {

constexpr Metric kHeldInfo = {
    "chip_held_info", v1::METRIC_TYPE_GAUGE, "1",
    "1 while a process of the job holds the chip; the labels name the job, its task and attempt."};

}  // namespace

ChipJobs::ChipJobs(std::string proc, std::string rings)
    : proc_(std::move(proc)), rings_(std::move(rings)) {}

ProcessJob ChipJobs::JobOf(int pid, const std::map<int, ProcessJob>& of_rings) const {
  const auto ring = of_rings.find(pid);
  return ring != of_rings.end() ? ring->second : JobOfEnvironment(proc_, pid);
}

bool ChipJobs::IsSettling(absl::Time now, const HeldChips& held) const {
  return std::any_of(held.begin(), held.end(), [&](const auto& one) {
    const auto known = holders_.find(one.first);
    return known == holders_.end() ||
           (!known->second.job.of_ring && now - known->second.first < kSettling);
  });
}

void ChipJobs::Look(absl::Time now, absl::Time time, const HeldChips& held, ChipEvents* events,
                    Sample* sample) {
  const bool settling = IsSettling(now, held);
  std::map<int, ProcessJob> of_rings;
  if (settling) {
    for (RingOwner& owner : OwnersOfRings(rings_)) of_rings[owner.pid] = std::move(owner.job);
  }
  for (const auto& [pid, chips] : held) {
    const auto [entry, is_new] = holders_.try_emplace(pid, Holder{now, {}, {}});
    Holder& holder = entry->second;
    const bool unsettled = !holder.job.of_ring && now - holder.first < kSettling;
    ProcessJob job = unsettled ? JobOf(pid, of_rings) : holder.job;
    if (is_new || job != holder.job || chips != holder.chips) {
      const std::string list = absl::StrJoin(chips, ",");
      events->Add(time, "chips_held",
                  absl::StrCat("process ", pid, " holds chips ", list,
                               job.job.empty() ? "" : " for ", job.job),
                  {{"chips", list},
                   {"pid", absl::StrCat(pid)},
                   {"job", job.job},
                   {"task", job.task},
                   {"attempt", job.attempt}});
    }
    holder.job = std::move(job);
    holder.chips = chips;
    for (const uint32_t chip : chips) {
      if (holder.job.job.empty()) continue;
      sample->Add(kHeldInfo,
                  {{"chip", absl::StrCat(chip)},
                   {"training_job", holder.job.job},
                   {"training_task", holder.job.task},
                   {"training_attempt", holder.job.attempt}},
                  1);
    }
  }
  for (auto holder = holders_.begin(); holder != holders_.end();) {
    if (held.contains(holder->first)) {
      ++holder;
      continue;
    }
    events->Add(time, "chips_released",
                absl::StrCat("process ", holder->first, " holds no chips any more"),
                {{"chips", absl::StrJoin(holder->second.chips, ",")},
                 {"pid", absl::StrCat(holder->first)},
                 {"job", holder->second.job.job}});
    holder = holders_.erase(holder);
  }
}

}  // namespace tacho::agent
