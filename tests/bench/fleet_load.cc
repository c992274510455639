// tacho-bench-fleet: a fleet of agents, each on a connection of its own, sends a collector what
// fleet_generator makes, or one agent what stood in a file of real columns, and waits until all of
// it is acknowledged as durable. Prints one line of JSON. With --rate 0 every agent sends as fast
// as its window allows.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/load_agent.h"
#include "tests/bench/load_flags.h"
#include "tests/bench/load_report.h"
#include "tests/bench/parallel_for.h"

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

constexpr double kMaxSeconds = 1800;
constexpr absl::Duration kRetryPause = absl::Milliseconds(500);  // As tacho-agent's first.

struct Load {
  std::vector<std::unique_ptr<LoadAgent>> agents;
  absl::Mutex mutex;
  std::string failure ABSL_GUARDED_BY(mutex);
  std::deque<std::pair<absl::Time, LoadAgent*>> retries ABSL_GUARDED_BY(mutex);  // By time.
};

// Connects those anew whose pause is over.
void Reconnect(Load* load) {
  std::vector<LoadAgent*> due;
  {
    absl::MutexLock lock(&load->mutex);
    while (!load->retries.empty() && load->retries.front().first <= absl::Now()) {
      due.push_back(load->retries.front().second);
      load->retries.pop_front();
    }
  }
  for (LoadAgent* agent : due) agent->Connect();
}

// Batches of all hosts spread evenly over each period, in the order of the agents.
void Pace(const LoadShape& shape, Load* load) {
  const double gap = shape.rows / (shape.rate * static_cast<double>(shape.hosts));
  double due = MonotonicSeconds();
  for (uint32_t batch = 0; batch < shape.batches; ++batch) {
    for (uint32_t agent = 0; agent < shape.agents; ++agent) {
      due += gap * shape.HostsOf(agent);
      // Short waits are not slept: a wake-up each would cost more than sending a little late.
      const double ahead = due - MonotonicSeconds();
      if (ahead > 0.002) {
        Reconnect(load);
        absl::SleepFor(absl::Seconds(ahead));
      }
      load->agents[agent]->Allow(shape.HostsOf(agent));
    }
  }
}

// What each agent sends, and how many samples that is in all.
std::vector<AgentMessages> MakeMessages(const LoadShape& shape, uint64_t* samples) {
  if (!shape.columns.empty()) {
    const std::vector<ColumnTable> tables = ReadColumnTables(shape.columns);
    for (const ColumnTable& table : tables) *samples += table.size() * table.front().size();
    return {MakeReplayMessages(shape.replay, tables)};
  }
  std::vector<AgentMessages> messages(shape.agents);
  ParallelFor(shape.agents, [&](uint32_t agent) {
    messages[agent] = MakeAgentMessages(shape.fleet, shape.FirstHost(agent), shape.HostsOf(agent),
                                        shape.rows, shape.batches);
  });
  *samples = uint64_t{shape.hosts} * shape.rows * shape.batches * kSeries;
  return messages;
}

LoadAgentOptions ReadAgentOptions(const std::map<std::string, std::string>& flags) {
  LoadAgentOptions options;
  options.address = flags.at("address");
  options.window = static_cast<uint64_t>(NumberFlag(flags, "window"));
  return options;
}

[[noreturn]] void GiveUp(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::_Exit(1);  // Streams are open: nothing can be destroyed.
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = LoadFlags();
  flags.insert({{"address", "127.0.0.1:7411"}, {"window", "16"}});
  ParseFlags(argc, argv, &flags);
  const LoadShape shape = ReadLoadShape(flags);
  const LoadAgentOptions options = ReadAgentOptions(flags);
  LoadReport report;
  std::vector<AgentMessages> messages = MakeMessages(shape, &report.samples);

  Load load;
  Countdown ready(static_cast<int64_t>(messages.size()));
  Countdown done(static_cast<int64_t>(messages.size()));
  const auto on_done = [&load, &ready, &done](const std::string& problem) {
    {
      absl::MutexLock lock(&load.mutex);
      if (load.failure.empty()) load.failure = problem;
    }
    ready.Done();  // Nobody waits for the welcome of a stream that is gone.
    done.Done();
  };
  const auto on_retry = [&load](LoadAgent* agent) {
    absl::MutexLock lock(&load.mutex);
    load.retries.emplace_back(absl::Now() + kRetryPause, agent);
  };
  for (AgentMessages& of_agent : messages) {
    report.messages += of_agent.batches.size();
    load.agents.push_back(std::make_unique<LoadAgent>(
        options, std::move(of_agent), [&ready] { ready.Done(); }, on_retry, on_done));
  }
  for (const auto& agent : load.agents) agent->Connect();
  if (!ready.Wait(absl::Minutes(1))) GiveUp("not every agent was welcomed within a minute");

  const double cpu_before = OwnCpuSeconds();
  const double begin = MonotonicSeconds();
  for (const auto& agent : load.agents) agent->Start();
  if (shape.rate > 0) {
    Pace(shape, &load);
  } else {
    for (const auto& agent : load.agents) agent->Allow(report.messages);
  }
  while (!done.Wait(absl::Milliseconds(20))) {
    Reconnect(&load);
    if (MonotonicSeconds() > begin + kMaxSeconds) {
      GiveUp("not everything was acknowledged within half an hour");
    }
  }
  report.seconds = MonotonicSeconds() - begin;
  report.client_cpu_seconds = OwnCpuSeconds() - cpu_before;
  {
    absl::MutexLock lock(&load.mutex);
    if (!load.failure.empty()) {
      std::fprintf(stderr, "%s\n", load.failure.c_str());
      return 1;
    }
  }
  for (const auto& agent : load.agents) {
    const auto& latencies = agent->latencies_ms();
    report.retries += agent->retries();
    report.latencies_ms.insert(report.latencies_ms.end(), latencies.begin(), latencies.end());
  }
  std::printf("%s\n", ToJson(&report).c_str());
  return 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
