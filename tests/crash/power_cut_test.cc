// The power goes at every sync, and between syncs: what was acknowledged is there once, bit for
// bit.
#include <iostream>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/crash/power_cut_store.h"

namespace tacho::crash {
namespace {

TEST(PowerCutTest, AtEverySync) {
  uint64_t syncs = 0;
  uint64_t samples = 0;
  for (uint64_t n = 1;; ++n) {
    bool reached = false;
    for (const bool after : {false, true}) {
      PowerCutStore store({.seed = n * 2 + (after ? 1 : 0)});
      store.env().CutAtSync(n, after);
      store.Work(40);
      reached = reached || store.env().dead();
      ASSERT_EQ(store.failure(), "");
      ASSERT_EQ(store.Check(), "") << (after ? "after" : "before") << " sync " << n;
      samples += store.model().samples_checked();
    }
    if (!reached) break;
    syncs = n;
  }
  std::cout << syncs << " syncs, " << samples << " samples checked\n";
  EXPECT_GT(syncs, 40u);
}

// One store that loses its power again and again, anywhere, also while it recovers from the last
// time.
TEST(PowerCutTest, AgainAndAgainAnywhere) {
  uint64_t cuts = 0;
  uint64_t samples = 0;
  std::mt19937_64 random(3);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    PowerCutStore store({.seed = seed * 1000});
    for (int i = 0; i < 12; ++i) {
      store.env().CutAtOperation(1 + random() % (random() % 3 == 0 ? 40 : 400));
      store.Work(30);
      cuts += store.env().dead() ? 1 : 0;
      if (random() % 3 == 0) {  // The power is back for a moment only.
        store.env().Start();
        store.env().CutAtOperation(1 + random() % 60);
        store.OpenBriefly();
        cuts += store.env().dead() ? 1 : 0;
      }
      ASSERT_EQ(store.failure(), "");
      ASSERT_EQ(store.Check(), "") << "seed " << seed << ", cut " << i;
    }
    samples += store.model().samples_checked();
  }
  std::cout << cuts << " cuts, " << samples << " samples checked\n";
  EXPECT_GT(cuts, 80u);
}

// The campaign cuts without dying: it takes each disk that a cut at a sync could leave while the
// store works on.
TEST(PowerCutTest, KeptCutsHoldWhatWasAcknowledged) {
  PowerCutStore store({.seed = 1, .upkeep = true});
  store.KeepCuts();
  store.Work(16);
  PowerCutStore::Tally tally;
  ASSERT_EQ(store.CheckCuts(&tally), "");
  EXPECT_EQ(tally.syncs, store.env().syncs());
  EXPECT_GT(tally.cuts, tally.syncs * 2);
  EXPECT_GT(tally.samples, 1000u);
}

}  // namespace
}  // namespace tacho::crash
