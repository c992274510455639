// Finds the processes that hold chips: they have the chips' device files open.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::agent {

using Environment = std::map<std::string, std::string>;

// The text of /proc/<pid>/environ: NAME=value, each ended by a zero byte. Among equal names the
// first counts, as in the process; what is no NAME=value is left out.
Environment ParseEnviron(absl::string_view text);

// The environment of a process; nullopt if it may not be read or exceeds kMaxEnvironBytes.
inline constexpr size_t kMaxEnvironBytes = size_t{2} * 1024 * 1024;
std::optional<Environment> ReadEnviron(const std::string& proc, int pid);

struct ChipHolder {
  int pid = 0;
  std::set<std::string> devices;
  std::optional<Environment> environment;  // None: not readable, or too large.
};

struct ChipHolders {
  std::vector<ChipHolder> holders;  // By process id.
  // False: some processes could not be looked at (another user's, without root), so that a chip
  // without a holder may have one.
  bool complete = true;
};

// Looks through all processes seldom, and at known holders each time. One thread.
class HolderWatch {
 public:
  // Between two looks through all processes: when everything is held, and when something is not.
  // A look takes some 50 ms of a processor on a machine with a thousand processes.
  static constexpr absl::Duration kSeldom = absl::Minutes(1);
  static constexpr absl::Duration kOften = absl::Seconds(10);

  explicit HolderWatch(std::string proc);

  // Finds the processes that hold `devices` (paths) now.
  const ChipHolders& Look(absl::Time now, const std::set<std::string>& devices);

 private:
  void LookThroughAll(const std::set<std::string>& devices);
  bool StillHold(const std::set<std::string>& devices) const;
  // None: may not be looked at. A process that has ended holds nothing.
  std::optional<std::set<std::string>> OpenOf(int pid, const std::set<std::string>& devices) const;

  const std::string proc_;
  ChipHolders found_;
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace tacho::agent
