// What the agent gave up, added up between two lines of the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::agent {

// Not thread-safe.
class LossReport {
 public:
  // Reasons beyond these, which others may have worded, are added up in one line.
  static constexpr size_t kMaxReasons = 32;

  // Adds one message. A line to log if nothing was said of this reason within the last minute: with
  // all that came since.
  std::optional<std::string> Add(uint64_t sequence, uint64_t rows, absl::string_view reason,
                                 absl::Time now);

 private:
  struct Sum {
    uint64_t messages = 0;
    uint64_t rows = 0;
    absl::Time said = absl::InfinitePast();
  };
  std::map<std::string, Sum, std::less<>> sums_;  // By reason; "" is all others.
};

}  // namespace tacho::agent
