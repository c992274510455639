#include "tests/chaos/episode.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/base/clock.h"
#include "proto/base/job_shard.h"
#include "tests/chaos/stored.h"

namespace tacho::chaos {
namespace {

namespace fs = std::filesystem;

// Generous: a busy machine and a debug build. Every wait ends as soon as its condition holds, and
// where something can be seen to move, this counts from its last move.
constexpr absl::Duration kPatience = absl::Seconds(90);

// Above ten minutes the clocks of agents and collectors differ by five at least, if they are set at
// all. A collector whose wrong time most agents share believes it, and rightly drops what is too
// new.
constexpr absl::Duration kGrid = absl::Minutes(10);
constexpr absl::Duration kAgentsOffGrid = absl::Minutes(5);

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// How long nothing has moved.
class Stillness {
 public:
  // `state` is what would change if something moved.
  void Saw(const std::vector<uint64_t>& state) {
    if (state == state_) return;
    state_ = state;
    since_ = MonotonicNow();
  }
  bool lasts() const { return MonotonicNow() - since_ > kPatience; }

 private:
  std::vector<uint64_t> state_;
  absl::Time since_ = MonotonicNow();
};

void Add(const FaultyProxy::Stats& more, FaultyProxy::Stats* sum) {
  sum->connections += more.connections;
  sum->cuts += more.cuts;
  sum->cuts_lingering += more.cuts_lingering;
  sum->stalls += more.stalls;
  sum->trickles += more.trickles;
  sum->refusals += more.refusals;
  sum->bytes += more.bytes;
}

}  // namespace

Episode::Episode(EpisodeOptions options, Totals* totals)
    : options_(std::move(options)), totals_(totals), random_(options_.seed) {
  fs::remove_all(options_.dir);
  fs::create_directories(options_.dir);
  const uint64_t drawn = OneIn(3) ? 2 : 1;
  collectors_.resize(options_.cluster > 0      ? options_.cluster
                     : options_.collectors > 0 ? options_.collectors
                                               : drawn);
  for (CollectorRun& run : collectors_) run.port = FreePort();
  MakeJobs();
  agents_.resize(1 + Below(2));
  for (size_t i = 0; i < collectors_.size(); ++i) MakeCollector(i);
  for (size_t i = 0; i < agents_.size(); ++i) MakeAgent(i);
}

void Episode::MakeJobs() {
  const std::string name = absl::StrCat("chaos-", options_.seed % 1'000'000);
  if (options_.cluster == 0) {
    jobs_ = {{.name = name, .recorded = {}}};
    return;
  }
  const auto shards = static_cast<uint32_t>(options_.cluster);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    std::string of_shard;
    for (int i = 0; of_shard.empty() || ShardOfJob(of_shard, shards) != shard; ++i) {
      of_shard = absl::StrCat(name, "-", i);
    }
    jobs_.push_back({.name = std::move(of_shard), .recorded = {}});
  }
}

void Episode::MakeCollector(size_t index) {
  CollectorRun& run = collectors_[index];
  const std::string base = absl::StrCat(options_.dir, "/collector-", index);
  std::ofstream config(base + ".yaml");
  config << "storage: {seal_rows: 64, seal_age: 1s}\nlog: {level: warn}\n";
  if (options_.cluster > 0) {
    std::vector<std::string> members;
    for (const CollectorRun& member : collectors_) {
      members.push_back(absl::StrCat("'127.0.0.1:", member.port, "'"));
    }
    config << "cluster: {members: [" << absl::StrJoin(members, ", ")
           << "], member: " << members[index] << "}\n";
  }
  config.close();
  run.clock = std::make_unique<ProcessClock>(options_.stepped_clock, base + ".clock");
  run.process = std::make_unique<Process>(
      std::vector<std::string>{options_.collector, "--config", base + ".yaml", "--data",
                               base + ".data", "--grpc", absl::StrCat("127.0.0.1:", run.port),
                               "--http", "127.0.0.1:0"},
      base + ".log", run.clock->environment());
}

void Episode::MakeAgent(size_t index) {
  AgentRun& run = agents_[index];
  const std::string base = absl::StrCat(options_.dir, "/agent-", index);
  run.rings = base + ".rings";
  run.log = base + ".log";
  fs::create_directories(run.rings);
  std::vector<std::string> addresses;
  for (const CollectorRun& collector : collectors_) {
    run.proxies.push_back(std::make_unique<FaultyProxy>());
    run.proxies.back()->SetTarget(collector.port);
    addresses.push_back(absl::StrCat("'127.0.0.1:", run.proxies.back()->port(), "'"));
  }
  const uint64_t rates[] = {2'000, 20'000, 0};
  // A spool drops what has waited for a week by the agent's clock, unless it is told not to.
  const bool keeps_all = OneIn(2);
  run.most_step = absl::Hours(keeps_all ? 24 * 120 : 48);
  std::ofstream(base + ".yaml")
      << "collector: {" << (options_.cluster > 0 ? "members" : "addresses") << ": ["
      << absl::StrJoin(addresses, ", ")
      << "], backoff_min: 4ms, backoff_max: 40ms, return_after: 300ms, backlog_rows_per_second: "
      << rates[Below(3)] << "}\nidentity: {agent_id: agent-" << index << ", host: host-" << index
      << "}\nspool: {path: " << base << ".spool, sync_interval: 3ms"
      << (keeps_all ? ", max_age: 0s" : "") << "}\nsources:\n"
      << "  host: {enabled: false}\n  rings: {directory: " << run.rings
      << ", poll_interval: 2ms}\n";
  run.clock = std::make_unique<ProcessClock>(options_.stepped_clock, base + ".clock");
  run.process = std::make_unique<Process>(
      std::vector<std::string>{options_.agent, "--config", base + ".yaml"}, run.log,
      run.clock->environment());
  for (uint64_t i = 0; i <= Below(2); ++i) {
    const auto task = static_cast<uint32_t>(index * 2 + i);
    Job& job = jobs_[Below(jobs_.size())];
    run.trainers.push_back(
        std::make_unique<Trainer>(run.rings, job.name, task, random_(), &job.recorded));
  }
}

std::string Episode::Run() {
  for (CollectorRun& run : collectors_) run.process->Start();
  for (AgentRun& run : agents_) run.process->Start();
  for (uint64_t i = 0; i < options_.rounds && failure_.empty(); ++i) {
    Round();
    ++totals_->rounds;
    if (i % 10 == 9) Look();
  }
  if (failure_.empty()) Settle();
  for (const AgentRun& run : agents_) {
    for (const auto& proxy : run.proxies) Add(proxy->stats(), &totals_->network);
    for (const absl::string_view line : absl::StrSplit(ReadFile(run.log), '\n')) {
      const bool backlog = absl::StrContains(line, "backlog_messages=") &&
                           !absl::StrContains(line, "backlog_messages=0");
      if (backlog) ++totals_->backlogs;
    }
  }
  for (AgentRun& run : agents_) run.process->Kill();
  for (CollectorRun& run : collectors_) run.process->Kill();
  ++totals_->episodes;
  if (failure_.empty()) fs::remove_all(options_.dir);
  return failure_;
}

void Episode::Round() {
  Train(8);
  AgentRun& agent = agents_[Below(agents_.size())];
  FaultyProxy& proxy = *agent.proxies[Below(agent.proxies.size())];
  const uint64_t chance = Below(100);
  if (chance < 10 && agent.clock->can_be_set()) {
    StepClock();
  } else if (chance < 62) {
    proxy.Inject(AnyFault());
  } else if (chance < 72) {
    Outage();
  } else if (chance < 82) {
    Kill(true, false);
  } else if (chance < 88) {
    Kill(false, true);
  } else if (chance < 90) {
    Kill(true, true);
  } else if (chance < 93) {
    Restart();
  } else {
    for (const auto& healed : agent.proxies) healed->Heal();
  }
  Train(4);
  absl::SleepFor(absl::Milliseconds(Below(40)));
  CheckAlive();
}

void Episode::Train(uint64_t most_rows) {
  for (AgentRun& run : agents_) {
    for (const auto& trainer : run.trainers) {
      trainer->Train(static_cast<int>(Below(most_rows + 1)));
    }
  }
}

Fault Episode::AnyFault() {
  Fault fault;
  const uint64_t chance = Below(10);
  fault.kind = chance < 4   ? Fault::Kind::kCut
               : chance < 7 ? Fault::Kind::kCutLingering
               : chance < 9 ? Fault::Kind::kStall
                            : Fault::Kind::kTrickle;
  fault.from = OneIn(2) ? Side::kClient : Side::kServer;
  fault.after_bytes = Below(uint64_t{1} << Below(10));
  fault.duration = absl::Milliseconds(10 + Below(140));
  fault.chunk = 1 + Below(200);
  fault.reset = OneIn(2);
  return fault;
}

// Long enough for a backlog, which events make of many messages.
void Episode::Outage() {
  AgentRun& agent = agents_[Below(agents_.size())];
  const absl::Duration length = absl::Milliseconds(50 + Below(150));
  for (const auto& proxy : agent.proxies) {
    proxy->Inject({.kind = Fault::Kind::kRefuse, .duration = length});
  }
  for (const absl::Time end = absl::Now() + length; absl::Now() < end;) {
    Train(12);
    absl::SleepFor(absl::Milliseconds(10));
  }
  Train(60);
}

void Episode::Kill(bool agent, bool collector) {
  Process* const killed_agent = agent ? agents_[Below(agents_.size())].process.get() : nullptr;
  Process* const killed_collector =
      collector ? collectors_[Below(collectors_.size())].process.get() : nullptr;
  if (killed_agent != nullptr) killed_agent->Kill();
  if (killed_collector != nullptr) killed_collector->Kill();
  totals_->agent_kills += agent ? 1 : 0;
  totals_->collector_kills += collector ? 1 : 0;
  Train(OneIn(3) ? 100 : 6);
  absl::SleepFor(absl::Milliseconds(Below(60)));
  if (killed_collector != nullptr) killed_collector->Start();
  if (killed_agent != nullptr) killed_agent->Start();
  // Sometimes the next round comes while they still start.
  if (OneIn(2)) absl::SleepFor(absl::Milliseconds(Below(300)));
}

void Episode::Restart() {
  const bool agent = OneIn(2);
  Process* const process = agent ? agents_[Below(agents_.size())].process.get()
                                 : collectors_[Below(collectors_.size())].process.get();
  const int status = process->Stop(kPatience);
  if (status == 0) ++(agent ? totals_->agent_restarts : totals_->collector_restarts);
  if (status == Process::kTerminated) ++(agent ? totals_->agent_kills : totals_->collector_kills);
  if (status != 0 && status != Process::kTerminated) {
    return Fail(absl::StrCat(agent ? "an agent" : "a collector", " did not end in good order"));
  }
  Train(20);
  process->Start();
}

absl::Duration Episode::AnyStep(absl::Duration most) {
  if (OneIn(4)) return absl::ZeroDuration();
  int64_t seconds = 1;
  for (uint64_t doublings = Below(24); doublings > 0; --doublings) seconds *= 2;
  seconds += static_cast<int64_t>(Below(static_cast<uint64_t>(seconds)));
  absl::Duration step = std::min(absl::Seconds(seconds), most);
  if (step > kGrid) step = absl::Floor(step, kGrid);
  return OneIn(2) ? step : -step;
}

void Episode::StepClock() {
  clocks_were_set_ = true;
  if (OneIn(2)) {
    ++totals_->collector_steps;
    return collectors_[Below(collectors_.size())].clock->Set(AnyStep(absl::Hours(24 * 120)));
  }
  ++totals_->agent_steps;
  AgentRun& agent = agents_[Below(agents_.size())];
  const absl::Duration step = AnyStep(agent.most_step);
  agent.clock->Set(absl::AbsDuration(step) < kGrid ? step : step + kAgentsOffGrid);
}

void Episode::CheckAlive() {
  for (AgentRun& run : agents_) {
    if (!run.process->alive()) Fail("an agent ended by itself");
  }
  for (CollectorRun& run : collectors_) {
    if (!run.process->alive()) Fail("a collector ended by itself");
  }
}

bool Episode::ReadAll(std::vector<Found>* found) {
  found->assign(jobs_.size(), {});
  for (size_t i = 0; i < jobs_.size(); ++i) {
    std::vector<int> ports;
    for (const CollectorRun& run : collectors_) ports.push_back(run.port);
    if (options_.cluster > 0) ports = {ports[Below(ports.size())]};
    for (const int port : ports) {
      auto stored = ReadStored(port, jobs_[i].name);
      if (!stored.ok()) return false;
      (*found)[i].push_back(*std::move(stored));
    }
  }
  return true;
}

void Episode::SortEvents() {
  for (Job& job : jobs_) std::sort(job.recorded.events.begin(), job.recorded.events.end());
}

void Episode::Look() {
  std::vector<Found> found;
  if (!ReadAll(&found)) return;  // It starts.
  ++totals_->looks;
  Compare(found, false);
}

void Episode::Compare(const std::vector<Found>& found, bool complete) {
  SortEvents();
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Record& recorded = jobs_[i].recorded;
    for (const Record& record : found[i]) Fail(Aliens(recorded, record));
    if (complete) Fail(Missing(recorded, found[i]));
    // With two collectors the newest value may be at either.
    if (complete && found[i].size() == 1) Fail(AttributeDifferences(recorded, found[i][0]));
  }
}

bool Episode::IsComplete(const std::vector<Found>& found) const {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Record& recorded = jobs_[i].recorded;
    if (!Missing(recorded, found[i]).empty()) return false;
    if (found[i].size() == 1 && !AttributeDifferences(recorded, found[i][0]).empty()) return false;
  }
  return true;
}

bool Episode::RingsAreEmpty() const {
  return std::all_of(agents_.begin(), agents_.end(),
                     [](const AgentRun& run) { return fs::is_empty(run.rings); });
}

void Episode::Settle() {
  for (CollectorRun& run : collectors_) run.clock->Set(absl::ZeroDuration());
  for (AgentRun& run : agents_) {
    run.clock->Set(absl::ZeroDuration());
    for (const auto& proxy : run.proxies) proxy->Heal();
  }
  // Abseil's clock notices a step within two seconds. What an agent says of the end of a task by a
  // clock that is still wrong, the collector takes only later.
  if (clocks_were_set_) absl::SleepFor(absl::Seconds(3));
  for (AgentRun& run : agents_) {
    for (const auto& trainer : run.trainers) trainer->End();
  }
  SortEvents();
  std::vector<Found> found;
  AwaitEverything(&found);
  if (failure_.empty()) StopAll();
  if (!failure_.empty()) return;

  // The disk holds what the collectors reported.
  for (CollectorRun& run : collectors_) run.process->Start();
  const absl::Time end = MonotonicNow() + kPatience;
  while (!ReadAll(&found) && MonotonicNow() < end) absl::SleepFor(absl::Milliseconds(20));
  Compare(found, true);
  Count(found);
}

void Episode::AwaitEverything(std::vector<Found>* found) {
  Stillness still;
  for (bool complete = false; !complete && failure_.empty();) {
    absl::SleepFor(absl::Milliseconds(30));
    CheckAlive();
    const bool answered = ReadAll(found);
    if (answered) still.Saw(WhatMoves(*found));
    if (!answered || !RingsAreEmpty()) {
      if (still.lasts()) Fail(answered ? "rings are left" : "a collector does not answer");
      continue;
    }
    complete = still.lasts() || IsComplete(*found);
    Compare(*found, complete);
  }
}

std::vector<uint64_t> Episode::WhatMoves(const std::vector<Found>& found) const {
  std::vector<uint64_t> state;
  for (const Found& of_job : found) {
    for (const Record& record : of_job) {
      state.push_back(record.sample_count());
      state.push_back(record.events.size());
      for (const auto& [attempt, values] : record.attributes) state.push_back(values.size());
    }
  }
  for (const AgentRun& run : agents_) {
    state.push_back(static_cast<uint64_t>(
        std::distance(fs::directory_iterator(run.rings), fs::directory_iterator())));
  }
  return state;
}

void Episode::StopAll() {
  for (AgentRun& run : agents_) {
    if (run.process->Stop(kPatience) != 0) Fail("an agent did not end in good order");
    // A collector that has everything has said so: a spool with a rest means a watermark that
    // stands still.
    const std::string log = ReadFile(run.log);
    const absl::string_view end =
        absl::string_view(log).substr(log.size() - std::min<size_t>(log.size(), 1500));
    if (!absl::StrContains(end, "msg=\"stopped;") ||
        !absl::StrContains(end, "spooled_messages=0 ")) {
      Fail("everything is stored, and the spool is not empty");
    }
  }
  for (CollectorRun& run : collectors_) {
    if (run.process->Stop(kPatience) != 0) Fail("a collector did not end in good order");
  }
}

void Episode::Count(const std::vector<Found>& found) {
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Record& recorded = jobs_[i].recorded;
    totals_->samples += recorded.sample_count();
    totals_->events += recorded.events.size();
    for (const auto& [attempt, values] : recorded.attributes) totals_->attributes += values.size();
    if (found[i].size() < 2) continue;
    totals_->failover_samples += recorded.sample_count();
    totals_->shared_samples += CountShared(found[i][0], found[i][1]);
  }
}

void Episode::Fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

}  // namespace tacho::chaos
