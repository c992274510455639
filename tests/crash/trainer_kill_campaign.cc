// Kills a trainer that records, again and again, and reads its ring: every row that it had closed
// is there, whole, and one more at most. The exit status is 0 only if nothing was wrong.
//
//   tacho-trainer-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/crash/dying_trainer.h"
#include "tests/support/flags.h"

namespace tacho::crash {
namespace {

struct Flags {
  std::string dir = "/tmp/tacho-trainer-kills";
  uint64_t kills = 0;  // 0: no limit.
  uint64_t seconds = 30;
  uint64_t seed = 1;
};

struct Totals {
  uint64_t kills = 0;
  int64_t closed = 0;
  int64_t rows = 0;
};

// One trainer. Returns what is wrong; empty if nothing.
std::string TrainAndDie(const Flags& flags, uint64_t random, Totals* totals) {
  DyingTrainer trainer({.directory = flags.dir, .ring_bytes = 4 << 20, .max_rows = 20'000});
  trainer.WaitForFirstRow();
  ::usleep(static_cast<useconds_t>(random % 1500));
  ::kill(trainer.pid(), SIGKILL);
  trainer.WaitForDeath();
  ++totals->kills;
  const DyingRing ring = ReadDyingRing(trainer.ring());
  totals->closed += trainer.closed();
  totals->rows += ring.rows;
  if (!ring.wrong.empty()) return ring.wrong;
  if (ring.lost != 0 || ring.rows < trainer.closed() || ring.rows > trainer.closed() + 1) {
    return absl::StrCat(ring.rows, " rows of ", trainer.closed(), " closed, ", ring.lost, " lost");
  }
  std::filesystem::remove(trainer.ring());
  return "";
}

int Campaign(const Flags& flags) {
  std::filesystem::create_directories(flags.dir);
  std::mt19937_64 random(flags.seed);
  Totals totals;
  std::string wrong;
  const absl::Time begin = absl::Now();
  while (wrong.empty() && (flags.kills == 0 || totals.kills < flags.kills) &&
         (flags.seconds == 0 || absl::Now() - begin < absl::Seconds(flags.seconds))) {
    wrong = TrainAndDie(flags, random(), &totals);
  }
  std::cout << absl::StrFormat("seed %d: %d kills; %d rows closed, %d read, %.0f s\n", flags.seed,
                               totals.kills, totals.closed, totals.rows,
                               absl::ToDoubleSeconds(absl::Now() - begin));
  std::cout << absl::StrFormat(
      "report {\"kills\": %d, \"acknowledged\": %d, \"compared\": %d, \"wrong\": %d}\n",
      totals.kills, totals.closed * kDyingMetrics, totals.rows * kDyingMetrics,
      wrong.empty() ? 0 : 1);
  std::cout << (wrong.empty() ? "nothing lost, nothing torn" : "FAILED: " + wrong) << "\n";
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  if (!tacho::testing::ParseFlags(argc, argv,
                                  {{"dir", &flags.dir},
                                   {"kills", &flags.kills},
                                   {"seconds", &flags.seconds},
                                   {"seed", &flags.seed}})) {
    std::cerr << "tacho-trainer-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]\n";
    return 2;
  }
  return tacho::crash::Campaign(flags);
}
