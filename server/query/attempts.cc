#include "server/query/attempts.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/grpc_status.h"

namespace tacho::server {
namespace {

bool AllMatch(const std::vector<storage::Matcher>& matchers, uint32_t attempt) {
  const std::string decimal = absl::StrCat(attempt);
  for (const storage::Matcher& matcher : matchers) {
    if (!matcher.MatchesValue(decimal)) return false;
  }
  return true;
}

}  // namespace

absl::Status AttemptCondition::Add(const storage::Matcher& matcher) {
  const bool compares = matcher.op() == storage::Matcher::Op::kEqual ||
                        matcher.op() == storage::Matcher::Op::kNotEqual;
  uint32_t attempt = 0;
  if (compares &&
      (!absl::SimpleAtoi(matcher.value(), &attempt) || absl::StrCat(attempt) != matcher.value())) {
    return InvalidFieldError(
        "selector.matchers.value",
        absl::StrCat("\"attempt\" is a decimal number from 0, not \"", matcher.value(), "\""));
  }
  matchers_.push_back(matcher);
  if (matcher.op() == storage::Matcher::Op::kEqual) only_ = attempt;
  asked_.reset();
  return absl::OkStatus();
}

bool AttemptCondition::Allows(uint32_t attempt) const {
  if (matchers_.empty()) return true;
  if (asked_ != attempt) {
    allowed_ = AllMatch(matchers_, attempt);
    asked_ = attempt;
  }
  return allowed_;
}

void AttemptCondition::Filter(storage::SampleBlock* block) const {
  if (matchers_.empty()) return;
  size_t kept = 0;
  for (size_t i = 0; i < block->size(); ++i) {
    if (!Allows(block->attempts[i])) continue;
    block->times[kept] = block->times[i];
    block->steps[kept] = block->steps[i];
    block->attempts[kept] = block->attempts[i];
    block->values[kept] = block->values[i];
    ++kept;
  }
  block->times.resize(kept);
  block->steps.resize(kept);
  block->attempts.resize(kept);
  block->values.resize(kept);
}

}  // namespace tacho::server
