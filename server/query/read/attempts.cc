#include "server/query/read/attempts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/errors/grpc_status.h"

namespace tacho::server::query {

size_t LeadingRows(uint32_t attempt, std::span<const uint32_t> attempts) {
  size_t others = 0;  // Counted without a branch: several rows per instruction.
  for (const uint32_t one : attempts) others += one != attempt ? 1 : 0;
  if (others == 0) return attempts.size();
  const auto end = std::find_if(attempts.begin(), attempts.end(),
                                [attempt](uint32_t one) { return one != attempt; });
  return static_cast<size_t>(end - attempts.begin());
}

absl::Status AttemptCondition::Add(const storage::Matcher& matcher) {
  const bool compares = matcher.op() == storage::Matcher::Op::kEqual ||
                        matcher.op() == storage::Matcher::Op::kNotEqual;
  uint32_t attempt = 0;
  if (compares &&
      (!absl::SimpleAtoi(matcher.value(), &attempt) || absl::StrCat(attempt) != matcher.value())) {
    return errors::InvalidFieldError(
        "selector.matchers.value",
        absl::StrCat("\"attempt\" is a decimal number from 0, not \"", matcher.value(), "\""));
  }
  matchers_.push_back(matcher);
  if (matcher.op() == storage::Matcher::Op::kEqual) only_ = attempt;
  asked_.reset();
  return absl::OkStatus();
}

void AttemptCondition::Require(std::optional<uint32_t> attempt) {
  none_ = !attempt.has_value();
  required_ = attempt;
  if (attempt.has_value()) only_ = attempt;
  asked_.reset();
}

void AttemptCondition::LeaveOutSuperseded(std::shared_ptr<const Timeline> timeline) {
  timeline_ = std::move(timeline);
  asked_.reset();
}

bool AttemptCondition::Decide(uint32_t attempt) const {
  if (none_ || (required_.has_value() && *required_ != attempt)) return false;
  if (matchers_.empty()) return true;
  const std::string decimal = absl::StrCat(attempt);
  for (const storage::Matcher& matcher : matchers_) {
    if (!matcher.MatchesValue(decimal)) return false;
  }
  return true;
}

void AttemptCondition::Ask(uint32_t attempt) const {
  if (asked_ == attempt) return;
  allowed_ = Decide(attempt);
  superseded_ = {};
  if (timeline_ != nullptr) superseded_ = timeline_->SupersededOf(attempt);
  asked_ = attempt;
}

bool AttemptCondition::Allows(uint32_t attempt) const {
  if (any()) return true;
  Ask(attempt);
  return allowed_;
}

bool AttemptCondition::AllowsRow(uint32_t attempt, int64_t step) const {
  if (!Allows(attempt)) return false;
  return superseded_.empty() || step == storage::kNoStep || !Overlaps(superseded_, step, step);
}

bool AttemptCondition::AllowsAll(const storage::SampleSummary& summary) const {
  if (!Allows(summary.attempt)) return false;
  if (superseded_.empty() || summary.lowest_step == storage::kNoStep) return true;
  return !Overlaps(superseded_, summary.lowest_step, summary.highest_step);
}

bool AttemptCondition::Filter(storage::Chunk* chunk) const {
  if (any()) return true;
  const storage::SampleView& samples = chunk->samples();
  if (samples.attempts.empty()) {
    Ask(samples.attempt);
    if (!allowed_ || superseded_.empty()) return allowed_;
  }
  chunk->CopyToBlock();
  Filter(chunk->block());
  chunk->ShowBlock();
  return chunk->samples().size() > 0;
}

void AttemptCondition::Filter(storage::SampleBlock* block) const {
  size_t i = 0;
  while (i < block->size()) {  // Attempts that are allowed as a whole stay where they are.
    const uint32_t attempt = block->attempts[i];
    Ask(attempt);
    if (!allowed_ || !superseded_.empty()) break;
    i += LeadingRows(attempt, std::span(block->attempts).subspan(i));
  }
  size_t kept = i;
  for (; i < block->size(); ++i) {
    if (!AllowsRow(block->attempts[i], block->steps[i])) continue;
    block->times[kept] = block->times[i];
    block->steps[kept] = block->steps[i];
    block->attempts[kept] = block->attempts[i];
    block->values[kept] = block->values[i];
    ++kept;
  }
  block->resize(kept);
}

}  // namespace tacho::server::query
