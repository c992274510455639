// Which job each chip belongs to, over time: by the process that holds it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "agent/sources/chips/chip_events.h"
#include "agent/sources/chips/process_jobs.h"
#include "agent/sources/rows/sample.h"

namespace tacho::agent {

// The chips that each process holds, by process id.
using HeldChips = std::map<int, std::set<uint32_t>>;

// A process's job is that of the ring it writes, since that is where its rows are; else what the
// recorder would take from its environment (client/environment_identity.h). One thread.
class ChipJobs {
 public:
  // The agent looks for the job of a process again for this long after it first saw the process: a
  // trainer may open its ring after its chips.
  static constexpr absl::Duration kSettling = absl::Minutes(5);

  // `rings`: directory; may be empty.
  ChipJobs(std::string proc, std::string rings);

  // Tells what changed since the last look: events `chips_held` and `chips_released`, and in the
  // sample, for each chip whose job is known, chip_held_info. `now` is a steady clock's, `time` the
  // machine's.
  void Look(absl::Time now, absl::Time time, const HeldChips& held, ChipEvents* events,
            Sample* sample);

 private:
  struct Holder {
    absl::Time first;
    std::set<uint32_t> chips;
    ProcessJob job;
  };

  ProcessJob JobOf(int pid, const std::map<int, ProcessJob>& of_rings) const;
  bool IsSettling(absl::Time now, const HeldChips& held) const;

  const std::string proc_;
  const std::string rings_;
  std::map<int, Holder> holders_;
};

}  // namespace tacho::agent
