// Conditions on "attempt". It is no label of a series but a property of each row, so it is taken
// out of the matchers and applied to what is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/matcher.h"
#include "storage/series_reader.h"

namespace tacho::server {

// Copies may be used by one thread each.
class AttemptCondition {
 public:
  AttemptCondition() = default;  // Every attempt.

  // `matcher` is on "attempt".
  //   INVALID_ARGUMENT  an = or != with something that is no decimal number.
  absl::Status Add(const storage::Matcher& matcher);

  bool Allows(uint32_t attempt) const;
  bool any() const { return matchers_.empty(); }
  // The only one that is allowed, if the condition is of that form: storage can filter by it.
  std::optional<uint32_t> only() const { return only_; }

  // Removes the rows of attempts that are not allowed.
  void Filter(storage::SampleBlock* block) const;

 private:
  std::vector<storage::Matcher> matchers_;
  std::optional<uint32_t> only_;
  // Answer for the attempt that was asked last: rows of one attempt follow each other.
  mutable std::optional<uint32_t> asked_;
  mutable bool allowed_ = true;
};

}  // namespace tacho::server
