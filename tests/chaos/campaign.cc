// Cuts, delays, kills and restarts everything between trainers and collectors, and compares what
// was recorded with what a query returns. Ends with a report; the exit status is 0 only if nothing
// was lost, doubled or changed.
//
//   tacho-chaos --collector PROGRAM --agent PROGRAM [--dir DIR] [--rounds N] [--seconds S] [--seed
//   S] [--collectors 1|2] [--cluster MEMBERS] [--stepped-clock LIBRARY]
//
// With the library of tests/support/clock it also sets the wall clocks of agents and collectors.
// A failure names the seed, which repeats the faults though not their timing, and leaves the
// episode's directory with all logs as it is.
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/chaos/episode.h"
#include "tests/support/flags.h"

namespace tacho::chaos {
namespace {

struct Flags {
  std::string collector;
  std::string agent;
  std::string dir = "/tmp/tacho-chaos";
  uint64_t rounds = 0;  // 0: no limit.
  uint64_t seconds = 60;
  uint64_t seed = 1;
  uint64_t collectors = 0;  // 0: one or two, as the seed has it.
  uint64_t cluster = 0;     // Members of a cluster, instead of those.
  std::string stepped_clock;
};

bool Parse(int argc, char** argv, Flags* flags) {
  const bool good = testing::ParseFlags(argc, argv,
                                        {{"collector", &flags->collector},
                                         {"agent", &flags->agent},
                                         {"dir", &flags->dir},
                                         {"rounds", &flags->rounds},
                                         {"seconds", &flags->seconds},
                                         {"seed", &flags->seed},
                                         {"collectors", &flags->collectors},
                                         {"cluster", &flags->cluster},
                                         {"stepped-clock", &flags->stepped_clock}});
  return good && flags->collectors <= 2 && flags->cluster != 1 && flags->cluster <= 9 &&
         !flags->collector.empty() && !flags->agent.empty();
}

void Report(const Flags& flags, const Totals& totals, absl::Duration took) {
  const FaultyProxy::Stats& network = totals.network;
  std::cout << absl::StrFormat("seed %d: %d rounds in %d episodes, %.0f s (%.1f rounds a second)\n",
                               flags.seed, totals.rounds, totals.episodes,
                               absl::ToDoubleSeconds(took),
                               static_cast<double>(totals.rounds) / absl::ToDoubleSeconds(took));
  std::cout << absl::StrFormat(
      "  killed: agents %d times, collectors %d times; restarted in good order: %d and %d times\n",
      totals.agent_kills, totals.collector_kills, totals.agent_restarts, totals.collector_restarts);
  std::cout << absl::StrFormat("  clocks set: of agents %d times, of collectors %d times\n",
                               totals.agent_steps, totals.collector_steps);
  std::cout << absl::StrFormat(
      "  network: %d connections, %d cut, %d more cut with their data arriving later, %d refused, "
      "%d stalls, %d trickles, %d bytes; %d streams began with a backlog\n",
      network.connections, network.cuts, network.cuts_lingering, network.refusals, network.stalls,
      network.trickles, network.bytes, totals.backlogs);
  std::cout << absl::StrFormat(
      "  compared: %d samples, %d events, %d attributes, and %d looks in between; with two "
      "collectors %d samples, %d of them at both\n",
      totals.samples, totals.events, totals.attributes, totals.looks, totals.failover_samples,
      totals.shared_samples);
  std::cout.flush();
}

int Campaign(const Flags& flags) {
  std::mt19937_64 random(flags.seed);
  Totals totals;
  const absl::Time begin = absl::Now();
  absl::Time told = begin;
  std::string failure;
  while (failure.empty() && (flags.rounds == 0 || totals.rounds < flags.rounds) &&
         (flags.seconds == 0 || absl::Now() < begin + absl::Seconds(flags.seconds))) {
    EpisodeOptions options{.collector = flags.collector,
                           .agent = flags.agent,
                           .dir = absl::StrCat(flags.dir, "/episode-", totals.episodes),
                           .seed = random(),
                           .collectors = flags.collectors,
                           .cluster = flags.cluster,
                           .stepped_clock = flags.stepped_clock};
    const std::string dir = options.dir;
    failure = Episode(std::move(options), &totals).Run();
    if (!failure.empty()) failure = absl::StrCat("in ", dir, "\n", failure);
    if (absl::Now() - told > absl::Minutes(1)) {
      told = absl::Now();
      Report(flags, totals, told - begin);
    }
  }
  Report(flags, totals, absl::Now() - begin);
  std::cout << absl::StrFormat(
      "report {\"rounds\": %d, \"kills\": %d, \"clock_steps\": %d, "
      "\"compared\": %d, \"wrong\": %d}\n",
      totals.rounds, totals.agent_kills + totals.collector_kills,
      totals.agent_steps + totals.collector_steps, totals.samples, failure.empty() ? 0 : 1);
  if (failure.empty()) {
    std::cout << "nothing lost, nothing doubled, nothing changed\n";
    return 0;
  }
  std::cout << "FAILED " << failure << "\n  repeat with --seed " << flags.seed << "\n";
  return 1;
}

}  // namespace
}  // namespace tacho::chaos

int main(int argc, char** argv) {
  setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);  // NOLINT(concurrency-mt-unsafe): no thread yet.
  tacho::chaos::Flags flags;
  if (!tacho::chaos::Parse(argc, argv, &flags)) {
    std::cerr << "tacho-chaos --collector PROGRAM --agent PROGRAM [--dir DIR] [--rounds N] "
                 "[--seconds S] [--seed S] [--collectors 1|2] [--cluster 2..9] "
                 "[--stepped-clock LIBRARY]\n";
    return 2;
  }
  return tacho::chaos::Campaign(flags);
}
