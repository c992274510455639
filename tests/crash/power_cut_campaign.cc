// Takes, at every sync of a store at work, each disk that a power cut there could leave, opens it
// and compares it with the model of that moment. Then the power does go, and the store works on
// with what that left. The exit status is 0 only if nothing was lost, doubled or changed.
//
//   tacho-power-cut-campaign [--seed S] [--syncs N] [--seconds S]
//
// A failure names the seed and the life to repeat.
#include <iostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/crash/power_cut_store.h"
#include "tests/support/flags.h"

namespace tacho::crash {
namespace {

struct Flags {
  uint64_t seed = 1;
  uint64_t syncs = 0;  // 0: no limit.
  uint64_t seconds = 30;
};

struct Totals {
  PowerCutStore::Tally tally;
  uint64_t stores = 0;
  uint64_t lives = 0;
};

bool IsDone(const Flags& flags, const Totals& totals, absl::Time begin) {
  return (flags.syncs > 0 && totals.tally.syncs >= flags.syncs) ||
         (flags.seconds > 0 && absl::Now() - begin >= absl::Seconds(flags.seconds));
}

// One store until it is given up. Returns what is wrong; empty if nothing.
std::string LiveAndDie(uint64_t seed, const Flags& flags, absl::Time begin, Totals* totals) {
  std::mt19937_64 random(seed);
  ++totals->stores;
  PowerCutStore store(
      {.seed = seed, .seal_rows = uint32_t{8} << (random() % 3), .upkeep = random() % 2 == 0});
  store.KeepCuts();
  const uint64_t lives = 1 + random() % 4;
  for (uint64_t life = 0; life < lives && !IsDone(flags, *totals, begin); ++life) {
    ++totals->lives;
    if (random() % 3 == 0) store.env().CutAtOperation(1 + random() % 600);
    store.Work(8 + random() % 40);
    std::string wrong = store.failure();
    if (wrong.empty()) wrong = store.CheckCuts(&totals->tally);
    if (wrong.empty()) {
      store.env().CutNow();
      wrong = store.Check();
    }
    if (!wrong.empty()) return absl::StrCat("store of seed ", seed, ", life ", life, ": ", wrong);
  }
  totals->tally.acknowledged += store.model().samples_stored();
  return store.CheckCuts(&totals->tally);
}

int Campaign(const Flags& flags) {
  std::mt19937_64 random(flags.seed);
  Totals totals;
  std::string wrong;
  const absl::Time begin = absl::Now();
  while (wrong.empty() && !IsDone(flags, totals, begin)) {
    wrong = LiveAndDie(random(), flags, begin, &totals);
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  std::cout << absl::StrFormat(
      "seed %d: %d syncs of %d stores in %d lives, %d disks that a cut before or after them could "
      "leave, %.0f s; %d samples acknowledged, %d compared, bit for bit\n",
      flags.seed, totals.tally.syncs, totals.stores, totals.lives, totals.tally.cuts, seconds,
      totals.tally.acknowledged, totals.tally.samples);
  std::cout << absl::StrFormat(
      "report {\"syncs\": %d, \"disks\": %d, \"stores\": %d, \"acknowledged\": %d, \"compared\": "
      "%d, \"wrong\": %d}\n",
      totals.tally.syncs, totals.tally.cuts, totals.stores, totals.tally.acknowledged,
      totals.tally.samples, wrong.empty() ? 0 : 1);
  if (!wrong.empty()) {
    std::cout << "FAILED: " << wrong << "\n  repeat with --seed " << flags.seed << "\n";
    return 1;
  }
  std::cout << "nothing lost, nothing doubled, nothing changed\n";
  return 0;
}

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  if (!tacho::testing::ParseFlags(
          argc, argv,
          {{"seed", &flags.seed}, {"syncs", &flags.syncs}, {"seconds", &flags.seconds}})) {
    std::cerr << "tacho-power-cut-campaign [--seed S] [--syncs N] [--seconds S]\n";
    return 2;
  }
  return tacho::crash::Campaign(flags);
}
