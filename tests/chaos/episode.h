// One episode of the chaos campaign: a few agents with trainers, one or two collectors, a proxy on
// every path between them, and rounds of faults; then everything is healed, and what the trainers
// recorded is compared with what the collectors answer.
//
// The collectors may be a cluster. Then there is a job for each of its members, and any member
// answers for each job.
//
// The wall clocks of agents and collectors are set too. Rows that a collector then takes for too
// old or too new must wait, and arrive when its clock is right again.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/faulty_proxy.h"
#include "tests/chaos/process.h"
#include "tests/chaos/process_clock.h"
#include "tests/chaos/record.h"
#include "tests/chaos/trainer.h"

namespace tacho::chaos {

struct Totals {
  uint64_t episodes = 0;
  uint64_t rounds = 0;
  uint64_t agent_kills = 0;
  uint64_t collector_kills = 0;
  uint64_t agent_restarts = 0;  // In good order.
  uint64_t collector_restarts = 0;
  uint64_t agent_steps = 0;  // Of wall clocks.
  uint64_t collector_steps = 0;
  uint64_t looks = 0;  // At a collector, in the midst of it.
  uint64_t samples = 0;
  uint64_t events = 0;
  uint64_t attributes = 0;
  uint64_t failover_samples = 0;  // In episodes with two collectors.
  uint64_t shared_samples = 0;    // Those at both.
  uint64_t backlogs = 0;          // Streams that began with one, as far as the log shows.
  FaultyProxy::Stats network;
};

struct EpisodeOptions {
  std::string collector;  // Programs.
  std::string agent;
  std::string dir;  // Made anew; removed if nothing is wrong.
  uint64_t seed = 0;
  uint64_t rounds = 40;
  uint64_t collectors = 0;    // 0: one or two, as the seed has it.
  uint64_t cluster = 0;       // Members of a cluster, instead of those; 0: none.
  std::string stepped_clock;  // The library that sets clocks; empty: they are left alone.
};

class Episode {
 public:
  Episode(EpisodeOptions options, Totals* totals);

  // Returns what is wrong; empty if nothing.
  std::string Run();

 private:
  struct Job {
    std::string name;
    Record recorded;
  };
  // What is stored of one job: by collector, or as a member of the cluster answers.
  using Found = std::vector<Record>;

  struct CollectorRun {
    int port = 0;
    std::unique_ptr<ProcessClock> clock;
    std::unique_ptr<Process> process;
  };
  struct AgentRun {
    std::string rings;
    std::string log;
    std::vector<std::unique_ptr<FaultyProxy>> proxies;  // One a collector.
    absl::Duration most_step;
    std::unique_ptr<ProcessClock> clock;
    std::unique_ptr<Process> process;
    std::vector<std::unique_ptr<Trainer>> trainers;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

  void MakeJobs();
  void MakeCollector(size_t index);
  void MakeAgent(size_t index);
  void Round();
  void Train(uint64_t most_rows);
  void Outage();
  void Kill(bool agent, bool collector);
  void Restart();
  void StepClock();
  // Up to `most`, of all sizes, ahead or back; zero now and then.
  absl::Duration AnyStep(absl::Duration most);
  Fault AnyFault();
  // Nobody ends by himself.
  void CheckAlive();
  // Checks that whatever is stored at this moment was recorded, once.
  void Look();
  // Heals everything, waits until everything has arrived, and compares.
  void Settle();
  // Waits for as long as something moves.
  void AwaitEverything(std::vector<Found>* found);
  // Whether there is everything that was recorded.
  bool IsComplete(const std::vector<Found>& found) const;
  // Figures that change as long as more is stored, or rings are read to their end.
  std::vector<uint64_t> WhatMoves(const std::vector<Found>& found) const;
  bool RingsAreEmpty() const;
  // Everything there is of each job; false if a collector cannot be asked.
  bool ReadAll(std::vector<Found>* found);
  void SortEvents();
  void Compare(const std::vector<Found>& found, bool complete);
  void StopAll();
  void Count(const std::vector<Found>& found);
  void Fail(const std::string& why);

  const EpisodeOptions options_;
  Totals* const totals_;
  std::mt19937_64 random_;
  std::vector<Job> jobs_;  // Trainers point into it.
  std::vector<CollectorRun> collectors_;
  std::vector<AgentRun> agents_;
  std::string failure_;
  bool clocks_were_set_ = false;
};

}  // namespace tacho::chaos
