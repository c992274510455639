// Kills a trainer that records, again and again, and reads its ring: every row that it had closed
// is there, whole, and one more at most. The exit status is 0 only if nothing was wrong.
//
//   tacho-trainer-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/crash/dying_trainer.h"
#include "tests/crash/kill_campaign.h"

namespace tacho::crash {
namespace {

struct Totals {
  uint64_t kills = 0;
  int64_t closed = 0;
  int64_t rows = 0;
};

// One trainer. Returns what is wrong; empty if nothing.
std::string TrainAndDie(const KillFlags& flags, uint64_t random, Totals* totals) {
  DyingTrainer trainer({.directory = flags.dir, .ring_bytes = 4 << 20, .max_rows = 20'000});
  trainer.WaitForFirstRow();
  ::usleep(static_cast<useconds_t>(random % 1500));
  ::kill(trainer.pid(), SIGKILL);
  const int status = trainer.WaitForDeath();
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    return absl::StrCat("the trainer ended by itself, wait status ", status);
  }
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

int Campaign(const KillFlags& flags) {
  std::filesystem::create_directories(flags.dir);
  std::mt19937_64 random(flags.seed);
  Totals totals;
  std::string wrong;
  const absl::Time begin = absl::Now();
  while (wrong.empty() && !IsDone(flags, totals.kills, begin)) {
    wrong = TrainAndDie(flags, random(), &totals);
  }
  std::cout << absl::StrFormat("seed %d: %d kills; %d rows closed, %d read, %.0f s\n", flags.seed,
                               totals.kills, totals.closed, totals.rows,
                               absl::ToDoubleSeconds(absl::Now() - begin));
  PrintReport(totals.kills, static_cast<uint64_t>(totals.closed * kDyingMetrics),
              static_cast<uint64_t>(totals.rows * kDyingMetrics), !wrong.empty());
  std::cout << (wrong.empty() ? "nothing lost, nothing torn" : "FAILED: " + wrong) << "\n";
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::KillFlags flags{.dir = "/tmp/tacho-trainer-kills"};
  if (!tacho::crash::ParseKillFlags(argc, argv, &flags)) {
    std::cerr << "tacho-trainer-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]\n";
    return 2;
  }
  return tacho::crash::Campaign(flags);
}
