// Which attempts' rows a query uses. An attempt is not a label of a series but a property of each
// row, so conditions on it leave the matchers and apply to the rows that are read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/read/timeline.h"
#include "storage/index/matcher.h"
#include "storage/model/series_reader.h"

namespace tacho::server::query {

// How many of these, counted from the front, are of the attempt.
size_t LeadingRows(uint32_t attempt, std::span<const uint32_t> attempts);

// Conditions that must all hold. One thread may use each copy.
class AttemptCondition {
 public:
  AttemptCondition() = default;  // Every attempt.

  // `matcher` is on "attempt".
  //   INVALID_ARGUMENT  = or != with a value that is not a decimal number.
  absl::Status Add(const storage::Matcher& matcher);
  // Only this attempt; nullopt: none at all.
  void Require(std::optional<uint32_t> attempt);
  // Leaves out the steps that the timeline, which is not null, calls superseded.
  void LeaveOutSuperseded(std::shared_ptr<const Timeline> timeline);

  // Whether any row of the attempt can be allowed, and whether a row of this step is. A row without
  // a step (kNoStep) is never superseded.
  bool Allows(uint32_t attempt) const;
  bool AllowsRow(uint32_t attempt, int64_t step) const;
  // Whether all rows of a summary are allowed. If needs_step_bounds(), the summary must have its
  // lowest and highest step.
  bool AllowsAll(const storage::SampleSummary& summary) const;
  // Everything is allowed.
  bool any() const {
    return matchers_.empty() && !none_ && !required_.has_value() && timeline_ == nullptr;
  }
  // Some steps of some attempt are superseded.
  bool needs_step_bounds() const { return timeline_ != nullptr && timeline_->supersedes(); }
  // The only attempt that is allowed, if the condition has that form: storage can filter by it.
  std::optional<uint32_t> only() const { return only_; }

  // Removes the samples that are not allowed; false if none is left.
  bool Filter(storage::Chunk* chunk) const;

 private:
  bool Decide(uint32_t attempt) const;
  void Filter(storage::SampleBlock* block) const;
  // Sets asked_, allowed_ and superseded_.
  void Ask(uint32_t attempt) const;

  std::vector<storage::Matcher> matchers_;
  bool none_ = false;
  std::optional<uint32_t> required_;
  std::optional<uint32_t> only_;
  std::shared_ptr<const Timeline> timeline_;  // May be null.
  // The answer for the attempt of the last question: rows of one attempt follow each other.
  mutable std::optional<uint32_t> asked_;
  mutable bool allowed_ = true;
  mutable std::span<const StepInterval> superseded_;  // In *timeline_.
};

}  // namespace tacho::server::query
