// Keeps repeated lines out of the log.
#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"

namespace tacho::agent {

// One thread. There must be few keys.
class OnceAMinute {
 public:
  // Whether `key` may be logged now: if it was not within the last minute.
  bool Allow(const std::string& key, absl::Time now) {
    const auto [last, fresh] = last_.try_emplace(key, now);
    if (!fresh && now < last->second + absl::Minutes(1)) return false;
    last->second = now;
    return true;
  }

 private:
  std::map<std::string, absl::Time> last_;
};

}  // namespace tacho::agent
