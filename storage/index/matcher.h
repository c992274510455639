// Conditions on labels, and what a query selects.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace re2 {
class RE2;
}

namespace tacho::storage {

// A condition on one label; a label that is absent has the empty value. "task" and "host" name the
// series' source. Immutable, thread-safe, cheap to copy.
class Matcher {
 public:
  enum class Op { kEqual, kNotEqual, kMatches, kNotMatches };

  //   INVALID_ARGUMENT  the regular expression does not compile (RE2, anchored at both ends, at
  //                     most 64 KiB of program); the text says why.
  static absl::StatusOr<Matcher> Create(std::string label, Op op, std::string value);

  const std::string& label() const { return label_; }
  Op op() const { return op_; }
  const std::string& value() const { return value_; }

  bool MatchesValue(absl::string_view label_value) const;
  bool Matches(const Series& series) const;
  // Whether the label is "task" or "host", and then whether a source matches.
  bool names_source() const { return label_ == "task" || label_ == "host"; }
  bool MatchesSource(const SeriesSource& source) const;

 private:
  Matcher(std::string label, Op op, std::string value, std::shared_ptr<const re2::RE2> regex);

  std::string label_;
  Op op_;
  std::string value_;
  std::shared_ptr<const re2::RE2> regex_;
};

struct Selector {
  std::string job;                   // Exact.
  std::vector<std::string> metrics;  // Exact names; none means every metric.
  std::vector<Matcher> matchers;     // All must hold.
};

}  // namespace tacho::storage
