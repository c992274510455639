// Simulates collectors that share a shard in a bucket, under a hostile scheduler.
//
//   tacho-simulate-cluster --runs 100000 --seed 1
//   tacho-simulate-cluster --runs 100000 --handover clocks
//   tacho-simulate-cluster --planted all
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/simulate/cluster/planted.h"
#include "tests/simulate/cluster/world.h"

namespace tacho::cluster {
namespace {

constexpr char kHelp[] =
    R"(tacho-simulate-cluster [--runs N] [--seed S] [--steps N] [--handover any|clocks]
                       [--planted NAME|all]

Runs the seeds S to S+N-1 (1 to 1000), each with so many steps (1500), and looks after each step
whether all that was acknowledged is in the bucket, once and in order. With --planted it makes a
mistake, and must find it.

With --handover any, the default, anybody takes the shard over at any moment. With clocks, the
collectors decide by signs of life; their clocks jump and run at different speeds, and when all faults
have ended the shard must get an owner that acknowledges everything.

Exit status: 0 if all is as it should be, 1 if not, 2 for wrong flags.
)";

struct Flags {
  uint64_t runs = 1000;
  uint64_t seed = 1;
  uint64_t steps = 1500;
  Handover handover = Handover::kAnyTime;
  std::string planted;
};

std::optional<Flags> ReadFlags(int argc, char** argv) {
  Flags flags;
  const std::map<absl::string_view, uint64_t*> numbers = {
      {"--runs", &flags.runs}, {"--seed", &flags.seed}, {"--steps", &flags.steps}};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return std::nullopt;
    if (absl::string_view(argv[i]) == "--planted") {
      flags.planted = argv[i + 1];
      if (flags.planted != "all" && !PlantedOf(flags.planted).has_value()) return std::nullopt;
      continue;
    }
    if (absl::string_view(argv[i]) == "--handover") {
      const absl::string_view how = argv[i + 1];
      if (how != "any" && how != "clocks") return std::nullopt;
      flags.handover = how == "any" ? Handover::kAnyTime : Handover::kByClocks;
      continue;
    }
    const auto number = numbers.find(argv[i]);
    if (number == numbers.end() || !absl::SimpleAtoi(argv[i + 1], number->second)) {
      return std::nullopt;
    }
  }
  return flags;
}

// Whether a seed finds a violation.
bool RunSeeds(const Flags& flags, Planted planted, absl::string_view name) {
  const auto began = std::chrono::steady_clock::now();
  WorldResult sum;
  uint64_t runs = 0;
  for (; runs < flags.runs; ++runs) {
    const WorldResult result = World(flags.seed + runs, planted, flags.handover).Run(flags.steps);
    sum.acknowledged += result.acknowledged;
    sum.takeovers += result.takeovers;
    sum.served += result.served;
    sum.commits += result.commits;
    sum.fenced += result.fenced;
    sum.deleted += result.deleted;
    if (result.violation.empty()) continue;
    std::printf("%s\n", absl::StrCat(name, ": seed ", flags.seed + runs, ", step ", result.step,
                                     ": ", result.violation)
                            .c_str());
    return true;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%s\n", absl::StrCat(name, ": ", runs, " runs from seed ", flags.seed, ", ",
                                   sum.acknowledged, " rows acknowledged, ", sum.takeovers,
                                   " takeovers, ", sum.served, " of them to serving, ", sum.commits,
                                   " commits, ", sum.fenced, " fenced, ", sum.deleted,
                                   " objects deleted; nothing lost, nothing twice; ",
                                   static_cast<double>(runs) / took.count(), " runs/s")
                          .c_str());
  std::fflush(stdout);
  return false;
}

int Main(int argc, char** argv) {
  const std::optional<Flags> flags = ReadFlags(argc, argv);
  if (!flags.has_value()) {
    std::fputs(kHelp, argc == 2 && absl::string_view(argv[1]) == "--help" ? stdout : stderr);
    return argc == 2 && absl::string_view(argv[1]) == "--help" ? 0 : 2;
  }
  if (flags->planted.empty()) return RunSeeds(*flags, Planted::kNone, "right") ? 1 : 0;
  bool missed = false;
  for (const PlantedName& known : kAllPlanted) {
    if (flags->planted != "all" && flags->planted != known.name) continue;
    missed |= !RunSeeds(*flags, known.planted, known.name);
  }
  return missed ? 1 : 0;
}

}  // namespace
}  // namespace tacho::cluster

int main(int argc, char** argv) { return tacho::cluster::Main(argc, argv); }
