// One simulation: a collector, agents, a network, and what goes wrong with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/base/log.h"
#include "tests/simulate/transport/sim_network.h"
#include "tests/simulate/world/agent_host.h"
#include "tests/simulate/world/collector_host.h"
#include "tests/simulate/world/faults.h"
#include "tests/simulate/world/knobs.h"
#include "tests/simulate/world/model.h"

namespace tacho::simulate {

struct LaboratoryOptions {
  uint64_t seed = 1;
  int64_t ticks = 600;  // Seconds of virtual time in which faults come.
  int64_t days = 0;     // Such times come again and again, with quiet hours between them, so long.
  std::set<int> left_out;  // Faults of the plan that do not happen, by their number.
  log::Log log;
};

struct LaboratoryResult {
  std::string wrong;                // What is wrong, in words; empty if nothing is.
  std::vector<std::string> faults;  // Those that happened.
  uint64_t rows = 0;
  uint64_t acknowledged = 0;
  uint64_t checks = 0;
  uint64_t refused_samples = 0;
  uint64_t range_samples = 0;  // Returned by queries of parts.
  double virtual_seconds = 0;
};

// When the run begins. With some seeds midnight comes while there are faults.
int64_t StartUnixNs(const LaboratoryOptions& options);

// For the thread that called BeginSchedule().
class Laboratory {
 public:
  explicit Laboratory(LaboratoryOptions options);

  // Lets faults happen for `ticks` seconds, and again for `days`, then ends all of them and waits
  // until everything is delivered, checking all the time.
  LaboratoryResult Run();

 private:
  // What undoes a fault that lasts.
  struct Undo {
    int64_t at_s = 0;
    std::function<void()> undo;
  };

  // Some seeds also have trainers, or refused writes, lost spools and queries of parts.
  bool HasTrainers() const { return options_.seed % 5 == 0 && options_.days == 0; }
  // Some have layouts that are new all the time.
  bool IsRestless() const { return options_.seed % 6 == 5 && knobs_.series_per_job == 0; }
  bool HasEvening() const { return options_.seed % 3 == 1; }
  bool ReachesFurther() const { return options_.seed % 11 == 10; }
  int64_t Now() const;  // In seconds.
  // Faults come for `ticks` seconds: a plan that follows from the seed.
  void Burst(uint64_t seed);
  // Hours or days in which rows trickle, and at most one thing is wrong.
  void Rest();
  Fault LongFault(int64_t seconds) const;
  // Unless it is left out.
  void Cause(const Fault& fault);
  void CauseNow(const Fault& fault);
  // Nothing is wrong any more.
  void EndFaults();
  // The host reaches nobody for as long as the fault says.
  void Part(const Fault& fault);
  void CauseOnDisk(const Fault& fault);
  // The agents whose way to the collector leads over the host.
  void ForEachPath(int number, const std::function<void(const std::string&)>& visit);
  void After(int64_t seconds, std::function<void()> undo);
  void UndoDue(bool all);
  // Begins processes that do not run, as a supervisor does, and ends those that want to.
  void Supervise();
  bool Check(bool all);
  // Queries parts, as a dashboard does.
  void QueryParts();
  // Nothing comes any more: what is there is sealed and merged, while dashboards look at it.
  void Evening();
  void Drain();
  std::string WhatWaits() const;
  HostId HostOf(int number) const;
  SimDisk* DiskOf(int number);
  std::string NameOf(int number) const;

  const LaboratoryOptions options_;
  const Knobs knobs_;
  Model model_;
  SimNetwork network_;
  std::unique_ptr<CollectorHost> collector_;
  std::vector<std::unique_ptr<AgentHost>> agents_;
  std::vector<Undo> undo_;
  int planned_ = 0;  // Faults so far, also those that are left out.
  LaboratoryResult result_;
};

}  // namespace tacho::simulate
