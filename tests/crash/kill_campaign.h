// What the campaigns share that kill a process again and again: their flags, their end, and the
// line that tests/campaigns/run reads.
#pragma once

#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/flags.h"

namespace tacho::crash {

struct KillFlags {
  std::string dir;        // Where what is killed keeps its files.
  uint64_t kills = 0;     // 0: no limit.
  uint64_t seconds = 30;  // 0: no limit.
  uint64_t seed = 1;
};

// Takes `more` flags too. False if one is wrong.
inline bool ParseKillFlags(int argc, char** argv, KillFlags* flags, testing::Flags more = {}) {
  more.insert({{"dir", &flags->dir},
               {"kills", &flags->kills},
               {"seconds", &flags->seconds},
               {"seed", &flags->seed}});
  return testing::ParseFlags(argc, argv, more);
}

// Whether there were as many kills, or as much time since `begin`, as the flags say.
inline bool IsDone(const KillFlags& flags, uint64_t kills, absl::Time begin) {
  return (flags.kills > 0 && kills >= flags.kills) ||
         (flags.seconds > 0 && absl::Now() - begin >= absl::Seconds(flags.seconds));
}

// `acknowledged`, `compared`: entries or samples. `wrong`: whether anything was.
inline void PrintReport(uint64_t kills, uint64_t acknowledged, uint64_t compared, bool wrong) {
  std::cout << absl::StrFormat(
      "report {\"kills\": %d, \"acknowledged\": %d, \"compared\": %d, \"wrong\": %d}\n", kills,
      acknowledged, compared, wrong ? 1 : 0);
}

}  // namespace tacho::crash
