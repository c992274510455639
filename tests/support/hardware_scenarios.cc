#include "tests/support/scenario.h"

namespace tacho::testing {
namespace {

constexpr double kMiB = 1024.0 * 1024;
constexpr uint32_t kHost = 5;

Scenario Make(const char* name, const char* condition, uint64_t seed, FaultKind kind,
              double amount) {
  Scenario scenario;
  scenario.name = name;
  scenario.condition = condition;
  scenario.fleet.seed = seed;
  scenario.fleet.tasks = 32;
  scenario.fleet.chips_per_host = 2;
  scenario.at_seconds = 900;
  scenario.duration_seconds = 2700;
  scenario.faults = {
      {.kind = kind, .host = kHost, .at_seconds = scenario.at_seconds, .amount = amount}};
  scenario.host = SyntheticHost(kHost);
  return scenario;
}

}  // namespace

std::vector<Scenario> HardwareScenarios(uint64_t seed) {
  std::vector<Scenario> scenarios = {
      Make("chip leaks 4 MiB/s", "MemoryLeak", seed + 1, FaultKind::kHbmLeak, 4 * kMiB),
      Make("chip leaks 1 MiB/s", "MemoryLeak", seed + 2, FaultKind::kHbmLeak, kMiB),
      Make("host leaks 64 MiB/s", "MemoryLeak", seed + 3, FaultKind::kHostLeak, 64 * kMiB),
      Make("chip fills up", "MemoryPressure", seed + 4, FaultKind::kHbmLeak, 64 * kMiB),
      Make("hot chip at 70 %", "Throttled", seed + 5, FaultKind::kThrottle, 0.3),
      Make("hot chip at 40 %", "Throttled", seed + 6, FaultKind::kThrottle, 0.6),
      Make("uncorrected ECC errors", "HardwareErrors", seed + 7, FaultKind::kEcc, 0.5),
      Make("XID errors", "HardwareErrors", seed + 8, FaultKind::kXid, 1),
      Make("link errors", "HardwareErrors", seed + 9, FaultKind::kLinkErrors, 5),
      Make("remapped rows", "HardwareErrors", seed + 10, FaultKind::kRemappedRows, 0.2),
  };
  scenarios[3].may_follow = {"MemoryLeak"};
  // A chip that is slow holds up its host, and with it all others.
  for (const size_t throttled : {4, 5}) {
    scenarios[throttled].may_follow = {"Straggling", "ThroughputDropped", "LowUtilization",
                                       "SlowerThanBaseline"};
  }
  Scenario healthy;
  healthy.name = "healthy, one step a second";
  healthy.fleet.seed = seed + 11;
  healthy.fleet.tasks = 32;
  healthy.duration_seconds = 3600;
  scenarios.push_back(healthy);
  healthy.name = "healthy, pauses often";
  healthy.fleet.seed = seed + 12;
  healthy.fleet.checkpoint_every = 60;
  healthy.fleet.checkpoint_seconds = 30;
  healthy.fleet.eval_every = 200;
  healthy.fleet.eval_seconds = 60;
  scenarios.push_back(healthy);
  return scenarios;
}

}  // namespace tacho::testing
