// The power that is stored of a job's chips and hosts, and what its energy is. docs/cost.md says
// for users which series count.
//
// The cost is bounded. If a job has more than kMaxPowerSamples samples of power, only every n-th of
// its hosts is read, and stands for n.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/conditions/window/signal_names.h"
#include "server/cost/energy.h"
#include "server/goodput/job_goodput.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/config/v1/cost.pb.h"

namespace tacho::server::cost {

inline constexpr uint64_t kMaxPowerSamples = 20'000'000;
// More series of power in the job of hosts are not looked through: about 100,000 chips.
inline constexpr size_t kMaxPowerSeries = 200'000;
// Pieces of spans and series that are laid over each other; beyond it the shortest spans are
// joined.
inline constexpr size_t kMaxMeterSteps = 50'000'000;

// Where power of hosts is found.
struct PowerNames {
  std::string hosts_job = "hosts";
  std::vector<std::string> host_power;  // Metrics; the best first.
  bool host_power_has_chips = true;
};
PowerNames PowerNamesOf(const config::v1::Cost& config);

struct JobEnergy {
  Energy chips;  // What counts of each.
  Energy hosts;
  uint32_t chips_counted = 0;
  uint32_t hosts_counted = 0;
  uint64_t read_every = 1;  // Hosts.

  Energy total() const;
};

// The chips on the hosts of a job, as their agents tell.
struct ChipsSeen {
  uint32_t chips = 0;
  std::string kind;              // Empty: not known, or several.
  bool all_preemptible = false;  // The agents of all hosts say so, as of a spot machine.
};

// The hosts that the job had in its attempts, and when. A host with no name is left out. Errors are
// the store's.
using HostWindows = std::map<std::string, std::vector<TimeWindow>>;
absl::StatusOr<HostWindows> HostWindowsOf(const storage::Store& store,
                                          const goodput::JobGoodput& goodput);

absl::StatusOr<ChipsSeen> ChipsOnHosts(const storage::Store& store, const HostWindows& hosts,
                                       const std::string& job, const PowerNames& names);

// Whether any power is recorded by the job or by those who record hosts. Cheap.
absl::StatusOr<bool> PowerIsRecorded(const storage::Store& store, const std::string& job,
                                     const conditions::SignalNames& signals,
                                     const PowerNames& names);

// nullopt: no power is recorded of it. `goodput` was made with spans. Errors are the store's and
// the control's, and
//   RESOURCE_EXHAUSTED  more than kMaxPowerSeries series of power.
absl::StatusOr<std::optional<JobEnergy>> EnergyOf(
    const storage::Store& store, const goodput::JobGoodput& goodput, const HostWindows& hosts,
    const conditions::SignalNames& signals, const PowerNames& names,
    const query::QueryControl& control, uint64_t max_samples = kMaxPowerSamples);

}  // namespace tacho::server::cost
