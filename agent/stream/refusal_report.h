// What the collector refused or folded, added up between two lines of the log.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// One thread.
class RefusalReport {
 public:
  // Adds what an Ack tells, and calls `say` for each reason that was not said within the last
  // minute: with all that came since, an example and what to do.
  void Add(const v1::Ack& ack, absl::Time now, const std::function<void(const std::string&)>& say);

 private:
  struct Sum {
    uint64_t samples = 0;
    uint64_t series = 0;
    absl::Time said = absl::InfinitePast();
  };
  void Add(const v1::Reject& reject, bool folded, absl::Time now,
           const std::function<void(const std::string&)>& say);

  std::map<std::pair<bool, int>, Sum> sums_;  // By whether they were folded, and reason.
};

}  // namespace tacho::agent
