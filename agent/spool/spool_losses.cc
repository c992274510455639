#include "agent/spool/spool_losses.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

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

void SpoolLosses::AddUncounted(uint64_t sequence) {
  TACHO_CHECK(entries_ == 0 || sequence == lost_.last() + 1);
  if (lost_.first() == 0) lost_.set_first(sequence);
  lost_.set_last(sequence);
  ++entries_;
}

void SpoolLosses::Add(uint64_t sequence, const SpooledMessage& message) {
  AddUncounted(sequence);
  rows_ += message.rows();
  if (message.kind() != v1::ClientMessage::kGap) {
    ++messages_;
    return;
  }

  v1::ClientMessage parsed = message.Parsed();
  const v1::Gap& older = parsed.gap();
  if (older.lost().last() + 1 < lost_.first()) {
    apart_.push_back(std::move(parsed));
    return;
  }
  lost_.set_first(std::min(lost_.first(), older.lost().first()));
  older_rows_ += older.rows();
}

void SpoolLosses::Continue(const v1::Gap& gap) {
  lost_ = gap.lost();
  older_rows_ = gap.rows();
}

std::vector<v1::ClientMessage> SpoolLosses::Gaps(absl::string_view reason) const {
  if (entries_ == 0) return {};
  std::vector<v1::ClientMessage> gaps = apart_;
  v1::Gap* gap = gaps.emplace_back().mutable_gap();
  *gap->mutable_lost() = lost_;
  gap->set_rows(rows_ + older_rows_);
  gap->set_reason(std::string(reason));
  return gaps;
}

}  // namespace tacho::agent
