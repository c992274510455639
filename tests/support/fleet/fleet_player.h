// Plays a whole fleet: its jobs, and the chips and files of its hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/support/fleet/chip_feed.h"
#include "tests/support/fleet/job_player.h"

namespace tacho::fleet {

struct FleetOptions {
  std::string directory;  // rings/<host>/ and proc/<host>/ are made below it.
  std::string collector;  // Gets the chips' metrics; empty: none are sent.
  uint64_t ring_bytes = uint64_t{1} << 20;
  uint64_t seed = 1;
  uint64_t generation = 1;  // ChipFeed's.
  int64_t begin_ns = 0;
  int64_t sample_ns = 1'000'000'000;  // Between samples of chips and hosts.
  std::function<void(const Happening&)> tell;
};

// One thread; the chips are sent on another one.
class FleetPlayer {
 public:
  FleetPlayer(const std::vector<JobSpec>& jobs, const FleetOptions& options);

  int64_t next_ns() const;
  // Plays everything until then, it included.
  void PlayUntil(int64_t time_ns);
  //   INVALID_ARGUMENT  no such job, or as JobPlayer::Apply().
  absl::Status Apply(const Fault& fault, int64_t now_ns);

  const std::vector<std::unique_ptr<JobPlayer>>& jobs() const { return jobs_; }

 private:
  void Sample(int64_t time_ns);
  void SampleHost(const JobPlayer& job, uint32_t host, int64_t time_ns);

  const FleetOptions options_;
  std::vector<std::unique_ptr<JobPlayer>> jobs_;
  std::unique_ptr<ChipFeed> feed_;
  std::vector<double> busy_seconds_;  // Processors' time, by host.
  int64_t sampled_ns_;
  bool said_trouble_ = false;
};

}  // namespace tacho::fleet
