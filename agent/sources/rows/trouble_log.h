// Lets a source say what is wrong without flooding the log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::agent {

// Takes one line, without a line feed, for the agent's log.
using LogCallback = std::function<void(absl::string_view)>;

// Passes on at most kLinesPerMinute lines of each kind in any minute; the first line of a later
// minute tells how many were held back. One thread.
class TroubleLog {
 public:
  // Enough to see a pattern, too few to fill a disk however many files are broken.
  static constexpr int kLinesPerMinute = 5;

  // `source` begins every line; `log` may be null.
  TroubleLog(absl::string_view source, LogCallback log);

  // `kind` is a fixed short word; there must be few of them.
  void Say(absl::Time now, absl::string_view kind, absl::string_view text);

 private:
  struct Minute {
    absl::Time begin = absl::InfinitePast();
    int lines = 0;
    uint64_t held_back = 0;
  };

  const std::string source_;
  const LogCallback log_;
  std::map<std::string, Minute> kinds_;
};

}  // namespace tacho::agent
