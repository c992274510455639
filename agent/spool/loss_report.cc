#include "agent/spool/loss_report.h"

#include "absl/strings/str_cat.h"

namespace tacho::agent {

std::optional<std::string> LossReport::Add(uint64_t sequence, uint64_t rows,
                                           absl::string_view reason, absl::Time now) {
  auto found = sums_.find(reason);
  if (found == sums_.end()) {
    const bool room = sums_.size() < kMaxReasons;
    found = sums_.try_emplace(room ? std::string(reason) : std::string()).first;
  }
  Sum& sum = found->second;
  ++sum.messages;
  sum.rows += rows;
  if (now < sum.said + absl::Minutes(1)) return std::nullopt;
  std::string line = absl::StrCat("gave up ", sum.messages, " spooled messages with ", sum.rows,
                                  " rows, the last of them message ", sequence, ": ", reason);
  sum = {.said = now};
  return line;
}

}  // namespace tacho::agent
