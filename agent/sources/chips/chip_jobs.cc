#include "agent/sources/chips/chip_jobs.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/sources/chips/chip_holders.h"
#include "client/environment_identity.h"
#include "client/ring_reader.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

constexpr ChipMetric kHeldInfo = {
    "chip_held_info", v1::METRIC_TYPE_GAUGE, "1",
    "1 while a process of the job holds the chip; the labels name the job, its task and attempt."};

}  // namespace

ChipJobs::ChipJobs(std::string proc, std::string rings)
    : proc_(std::move(proc)), rings_(std::move(rings)) {}

std::map<int, ChipJobs::Job> ChipJobs::JobsOfRings() const {
  std::map<int, Job> jobs;
  if (rings_.empty()) return jobs;
  size_t looked = 0;
  std::error_code error;
  fs::directory_iterator entry(rings_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::EndsWith(path, ".ring") || ++looked > kMaxRings) continue;
    const absl::StatusOr<std::unique_ptr<client::RingReader>> ring = client::RingReader::Open(path);
    if (!ring.ok()) continue;  // The source of rings says what is wrong with it.
    const client::RingInfo& info = (*ring)->info();
    jobs[static_cast<int>(info.pid)] = {info.job, absl::StrCat(info.task),
                                        absl::StrCat(info.attempt), true};
  }
  return jobs;
}

ChipJobs::Job ChipJobs::JobOf(int pid, const std::map<int, Job>& of_rings) const {
  const auto ring = of_rings.find(pid);
  if (ring != of_rings.end()) return ring->second;
  const std::optional<Environment> environment = ReadEnviron(proc_, pid);
  if (!environment.has_value()) return {};
  const client::AttemptIdentity found = client::FindIdentity(
      "", std::nullopt, std::nullopt, [&environment](const char* name) -> const char* {
        const auto variable = environment->find(name);
        return variable == environment->end() ? nullptr : variable->second.c_str();
      });
  if (found.job.empty()) return {};
  // A task that cannot be told is not told.
  if (!found.trouble.empty()) return {found.job, "", "", false};
  return {found.job, absl::StrCat(found.task), absl::StrCat(found.attempt), false};
}

bool ChipJobs::IsSettling(absl::Time now, const HeldChips& held) const {
  return std::any_of(held.begin(), held.end(), [&](const auto& one) {
    const auto known = holders_.find(one.first);
    return known == holders_.end() ||
           (!known->second.job.of_ring && now - known->second.first < kSettling);
  });
}

void ChipJobs::Look(absl::Time now, absl::Time time, const HeldChips& held, ChipEvents* events,
                    ChipSample* sample) {
  const bool settling = IsSettling(now, held);
  const std::map<int, Job> of_rings = settling ? JobsOfRings() : std::map<int, Job>();
  for (const auto& [pid, chips] : held) {
    const auto [entry, is_new] = holders_.try_emplace(pid, Holder{now, {}, {}});
    Holder& holder = entry->second;
    const bool unsettled = !holder.job.of_ring && now - holder.first < kSettling;
    Job job = unsettled ? JobOf(pid, of_rings) : holder.job;
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
