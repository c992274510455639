// tacho-bench-fleet: a fleet of agents, each on a connection of its own, sends a collector what
// fleet_generator makes, and waits until all of it is acknowledged as durable. Prints one line of
// JSON. With --rate 0 every agent sends as fast as its window allows.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/load_agent.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

// Counts events that happen on other threads.
class Countdown {
 public:
  explicit Countdown(int64_t count) : left_(count) {}
  void Done() {
    absl::MutexLock lock(&mutex_);
    --left_;
  }
  bool Wait(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    const auto none_left = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ <= 0; };
    return mutex_.AwaitWithTimeout(absl::Condition(&none_left), timeout);
  }

 private:
  absl::Mutex mutex_;
  int64_t left_ ABSL_GUARDED_BY(mutex_);
};

struct Load {
  std::vector<std::unique_ptr<LoadAgent>> agents;
  uint64_t batches_per_agent = 0;
  absl::Mutex mutex;
  std::string failure ABSL_GUARDED_BY(mutex);
};

// Batches of all agents spread evenly over each period, in the order of the agents.
void Pace(Load* load, double batches_per_second) {
  const double gap = 1 / (batches_per_second * static_cast<double>(load->agents.size()));
  double due = MonotonicSeconds();
  for (uint64_t batch = 0; batch < load->batches_per_agent; ++batch) {
    for (const auto& agent : load->agents) {
      due += gap;
      // Short waits are not slept: a wake-up each would cost more than sending a little late.
      const double ahead = due - MonotonicSeconds();
      if (ahead > 0.002) absl::SleepFor(absl::Seconds(ahead));
      agent->Allow(1);
    }
  }
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {{"address", "127.0.0.1:7411"},
                                              {"agents", "200"},
                                              {"hosts-per-agent", "1"},
                                              {"rows", "1"},
                                              {"batches", "100"},
                                              {"window", "16"},
                                              {"rate", "0"},
                                              {"seed", "1"},
                                              {"start-unix-s", "0"}};
  ParseFlags(argc, argv, &flags);
  const auto agent_count = static_cast<uint32_t>(NumberFlag(flags, "agents"));
  const auto hosts = static_cast<uint32_t>(NumberFlag(flags, "hosts-per-agent"));
  const auto rows = static_cast<uint32_t>(NumberFlag(flags, "rows"));
  const auto batches = static_cast<uint32_t>(NumberFlag(flags, "batches"));
  FleetOptions fleet;
  fleet.seed = static_cast<uint64_t>(NumberFlag(flags, "seed"));
  fleet.start_unix_ns = NumberFlag(flags, "start-unix-s") * 1'000'000'000;
  if (fleet.start_unix_ns == 0) {
    fleet.start_unix_ns = absl::ToUnixNanos(absl::Now() - absl::Hours(2));
  }
  LoadAgentOptions options;
  options.address = flags.at("address");
  options.window = static_cast<uint64_t>(NumberFlag(flags, "window"));

  Load load;
  load.batches_per_agent = uint64_t{batches} * hosts;
  Countdown ready(agent_count);
  Countdown done(agent_count);
  const auto on_done = [&load, &ready, &done](const std::string& problem) {
    {
      absl::MutexLock lock(&load.mutex);
      if (load.failure.empty()) load.failure = problem;
    }
    ready.Done();  // Nobody waits for the welcome of a stream that is gone.
    done.Done();
  };
  for (uint32_t i = 0; i < agent_count; ++i) {
    load.agents.push_back(std::make_unique<LoadAgent>(
        options, MakeAgentMessages(fleet, i * hosts, hosts, rows, batches),
        [&ready] { ready.Done(); }, on_done));
  }
  for (const auto& agent : load.agents) agent->Connect();
  if (!ready.Wait(absl::Minutes(1))) {
    std::fprintf(stderr, "not every agent was welcomed within a minute\n");
    std::_Exit(1);
  }

  const double cpu_before = OwnCpuSeconds();
  const double begin = MonotonicSeconds();
  for (const auto& agent : load.agents) agent->Start();
  const auto rate = static_cast<double>(NumberFlag(flags, "rate"));
  if (rate > 0) {
    Pace(&load, rate / rows);
  } else {
    for (const auto& agent : load.agents) agent->Allow(load.batches_per_agent);
  }
  if (!done.Wait(absl::Minutes(30))) {
    std::fprintf(stderr, "not everything was acknowledged within half an hour\n");
    std::_Exit(1);
  }
  LoadReport report;
  report.seconds = MonotonicSeconds() - begin;
  report.client_cpu_seconds = OwnCpuSeconds() - cpu_before;
  {
    absl::MutexLock lock(&load.mutex);
    if (!load.failure.empty()) {
      std::fprintf(stderr, "%s\n", load.failure.c_str());
      return 1;
    }
  }
  report.messages = load.batches_per_agent * agent_count;
  report.samples = report.messages * rows * kSeries;
  for (const auto& agent : load.agents) {
    const auto& latencies = agent->latencies_ms();
    report.latencies_ms.insert(report.latencies_ms.end(), latencies.begin(), latencies.end());
  }
  std::printf("%s\n", ToJson(&report).c_str());
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
