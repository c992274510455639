// When the trainers of a job are profiled without anybody asking: every n steps, every so often,
// and when a condition is raised. docs/hang.md says how the profiles are taken.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/conditions/window/finding.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

// conditions.profiler, or that of an entry of conditions.jobs.
struct ProfilerRules {
  std::set<std::string> on;     // Names of conditions.
  absl::Duration every;         // 0: not by time.
  int64_t every_steps = 0;      // 0: not by steps.
  absl::Duration duration;      // How long a profile records.
  absl::Duration min_interval;  // Between two profiles of a job.
  size_t tasks = 0;             // How many are profiled; 0: all.
};

struct ProfileOrder {
  std::string job;
  std::string cause;            // For the event: "every 1000 steps", "Straggling".
  std::vector<uint32_t> tasks;  // Empty: all.
  absl::Duration duration;
};

// Decides for one job. Not thread-safe; it reads no clock and does no I/O.
//
// A schedule counts from the first call of Next() on, and anew in each attempt: so neither a
// restart of the collector nor one of the job is profiled at once. A condition that is raised
// within min_interval of the last profile is passed over; a schedule waits until that is over.
class ProfileSchedule {
 public:
  // A condition of the job was raised now.
  void Raised(absl::string_view condition, const Finding& finding, const ProfilerRules& rules,
              absl::Time now);
  // Returns what is due; nothing if the job has ended or no task of it lives. It returns the same
  // again until Taken() says that it is under way, but drops what a condition asked for after
  // kPatience.
  std::optional<ProfileOrder> Next(const JobWindow& window, const ProfilerRules& rules,
                                   absl::Time now);
  void Taken(absl::Time now);

  static constexpr absl::Duration kPatience = absl::Minutes(1);

 private:
  struct Wish {
    std::string condition;
    std::vector<uint32_t> culprits;
    absl::Time until;
  };

  std::optional<std::string> CauseOf(const ProfilerRules& rules, int64_t step, absl::Time now);

  std::optional<Wish> wish_;
  absl::Time last_taken_ = absl::InfinitePast();
  // What the schedule counts from.
  std::optional<uint32_t> attempt_;
  absl::Time since_ = absl::InfinitePast();
  int64_t since_step_ = 0;
  int64_t newest_step_ = 0;  // At the last Next().
};

}  // namespace tacho::server::conditions
