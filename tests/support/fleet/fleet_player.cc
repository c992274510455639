#include "tests/support/fleet/fleet_player.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/support/fleet/host_files.h"
#include "tests/support/fleet/noise.h"

namespace tacho::fleet {
namespace {

constexpr double kBusyProcessors = 22;    // While a host trains.
constexpr uint64_t kChipQuantity = 1000;  // Apart from the model's.

}  // namespace

FleetPlayer::FleetPlayer(const std::vector<JobSpec>& jobs, const FleetOptions& options)
    : options_(options), sampled_ns_(options.begin_ns) {
  uint32_t hosts = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    JobSpec spec = jobs[i];
    spec.first_host = hosts;
    hosts += spec.hosts();
    jobs_.push_back(
        std::make_unique<JobPlayer>(spec, PlayerOptions{.ring_root = options.directory + "/rings",
                                                        .ring_bytes = options.ring_bytes,
                                                        .seed = Mix(options.seed + i),
                                                        .begin_ns = options.begin_ns,
                                                        .tell = options.tell}));
  }
  busy_seconds_.resize(hosts);
  for (uint32_t host = 0; host < hosts; ++host) {
    // Errors show as rings that cannot be made, which recorders say.
    std::error_code error;
    std::filesystem::create_directories(absl::StrCat(options.directory, "/rings/", HostName(host)),
                                        error);
  }
  if (!options.collector.empty()) {
    feed_ = std::make_unique<ChipFeed>(options.collector, options.generation);
  }
}

int64_t FleetPlayer::next_ns() const {
  int64_t next = sampled_ns_ + options_.sample_ns;
  for (const auto& job : jobs_) next = std::min(next, job->next_ns());
  return next;
}

void FleetPlayer::PlayUntil(int64_t time_ns) {
  while (next_ns() <= time_ns) {
    const int64_t now = next_ns();
    for (const auto& job : jobs_) {
      if (job->next_ns() <= now) job->PlayNext();
    }
    if (sampled_ns_ + options_.sample_ns <= now) Sample(now);
  }
}

absl::Status FleetPlayer::Apply(const Fault& fault, int64_t now_ns) {
  for (const auto& job : jobs_) {
    if (job->spec().name == fault.job) return job->Apply(fault, now_ns);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", fault.text, "': the fleet has no job ", fault.job));
}

void FleetPlayer::Sample(int64_t time_ns) {
  for (const auto& job : jobs_) {
    for (uint32_t host = 0; host < job->spec().hosts(); ++host) {
      SampleHost(*job, job->spec().first_host + host, time_ns);
    }
  }
  sampled_ns_ = time_ns;
}

void FleetPlayer::SampleHost(const JobPlayer& job, uint32_t host, int64_t time_ns) {
  std::vector<std::array<double, kChipMetrics>> chips;
  bool works = false;
  for (uint32_t task = 0; task < job.spec().tasks; ++task) {
    if (job.spec().HostOf(task) != host) continue;
    const ChipState chip = job.ChipAt(task, time_ns);
    works = works || chip.activity != Activity::kIdle;
    const uint64_t key = Key(options_.seed, kChipQuantity, host, chips.size());
    chips.push_back(SampleChip(chip, key, time_ns));
  }
  if (feed_) feed_->Add(HostName(host), time_ns, std::move(chips));
  const double passed = static_cast<double>(time_ns - sampled_ns_) / 1e9;
  busy_seconds_.at(host) += (works ? kBusyProcessors : 0.5) * passed;
  const double up = static_cast<double>(time_ns - options_.begin_ns) / 1e9;
  const absl::Status status = WriteHostFiles(
      absl::StrCat(options_.directory, "/proc/", HostName(host)), up, busy_seconds_.at(host));
  if (!status.ok() && !std::exchange(said_trouble_, true)) {
    std::fprintf(stderr, "tacho-fleet-sim: %s\n", status.ToString().c_str());
  }
}

}  // namespace tacho::fleet
