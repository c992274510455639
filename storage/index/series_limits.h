// Limits on the series that the index takes in: the numbers, which of them hold for which series,
// and what happens to a series that is one too many. Values only; registration.h applies them.
//
// A limit concerns new series. A series that exists always passes, whatever the limits say now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace re2 {
class RE2;
}

namespace tacho::storage {

// The label of a series that stands for others which were folded into it, and its value. Nobody
// else may use the name.
inline constexpr absl::string_view kOverflowLabel = "overflow";
inline constexpr absl::string_view kOverflowValue = "true";

// In the order in which they are looked at; of several that a series would break the first counts.
enum class Limit : uint8_t {
  kJobs,             // Jobs that exist.
  kMetricNameBytes,  // Length of the metric's name.
  kLabels,           // Labels of the series.
  kLabelNameBytes,
  kLabelValueBytes,
  kAllowedLabels,   // A label whose name is not among those allowed.
  kLabelValues,     // Distinct values that a label has in the job.
  kMetricSeries,    // Series of the metric in the job.
  kJobSeries,       // Series of the job.
  kOverflowSeries,  // Series of the job that others are folded into.
  kTextBytes,       // Names and labels in memory.
  kSeries,          // Series in memory.
  kStoredSeries,    // Series that exist.
  kLayoutColumns,   // Columns of all layouts of the job, in memory.
  // Rules on names and texts, which are checked before a definition reaches the index.
  kNames,
};
inline constexpr size_t kLimits = static_cast<size_t>(Limit::kNames) + 1;

// The name of the limit's configuration key: "series_per_metric".
absl::string_view LimitKey(Limit limit);

// What happens to a new series that breaks a limit.
enum class LimitAction : uint8_t {
  kReject,   // It is refused.
  kFold,     // Its values are added to those of an overflow series; refused if there is no room
             // for that one either.
  kObserve,  // It is counted, and taken.
};
absl::string_view ActionName(LimitAction action);  // "reject".

// The limits for a series, by its job and metric.
struct SeriesLimits {
  // This one and all below count everything that the job has had since it began.
  uint64_t series_per_job = 2'000'000;
  uint64_t series_per_metric = 500'000;  // Overflow series left out.
  uint64_t values_per_label = 20'000;    // "overflow" left out.
  uint64_t overflow_series_per_job = 20'000;
  uint32_t labels_per_series = 16;
  uint32_t metric_name_bytes = 256;
  uint32_t label_name_bytes = 128;
  uint32_t label_value_bytes = 1024;
  std::vector<std::string> allowed_labels;  // Sorted; empty allows every name.
  LimitAction action = LimitAction::kReject;
};

// The limits for the index as a whole.
struct TotalLimits {
  uint64_t jobs = 100'000;               // Those that exist, until they expire.
  uint64_t series = 10'000'000;          // In memory: of jobs in use.
  uint64_t stored_series = 100'000'000;  // Those that exist, until their job expires.
  uint64_t text_bytes = 1 << 30;         // Names and labels of jobs in memory.
  // Counts the columns of all layouts of one job in memory. Series that exist can be put together
  // in any number of ways, and each is a layout: past this a new one is refused as a whole.
  uint64_t layout_columns_per_job = 100'000'000;
  // kFold folds into overflow series that exist: there is no room for others.
  LimitAction action = LimitAction::kReject;
};

// Other limits for some series.
struct LimitRule {
  // RE2 expressions that must match the whole name; empty matches every one.
  std::string job;
  std::string metric;
  SeriesLimits limits;
};

// Immutable, thread-safe.
class LimitPolicy {
 public:
  struct Options {
    TotalLimits totals;
    SeriesLimits series;           // Where no rule matches.
    std::vector<LimitRule> rules;  // The first that matches counts.
  };
  static constexpr int kNoRule = -1;

  //   INVALID_ARGUMENT  an expression does not compile; the text says which and why.
  static absl::StatusOr<std::shared_ptr<const LimitPolicy>> Create(Options options);
  // With the options' defaults.
  static std::shared_ptr<const LimitPolicy> Default();
  ~LimitPolicy();

  const TotalLimits& totals() const { return options_.totals; }
  const SeriesLimits& OfRule(int rule) const {
    return rule == kNoRule ? options_.series : options_.rules[static_cast<size_t>(rule)].limits;
  }

  // Finds the rules of one job's metrics. Not thread-safe; the policy and the names that it is
  // given must outlive it.
  class OfJob {
   public:
    OfJob(const LimitPolicy* policy, absl::string_view job);
    // The index of the rule, or kNoRule. An expression sees each name once.
    int RuleOf(absl::string_view metric);

   private:
    const LimitPolicy* const policy_;
    std::vector<int> candidates_;  // Whose job matches, up to the first that any metric matches.
    absl::flat_hash_map<absl::string_view, int> known_;
  };

 private:
  struct Patterns {
    std::unique_ptr<const re2::RE2> job;  // nullptr: every one.
    std::unique_ptr<const re2::RE2> metric;
  };
  explicit LimitPolicy(Options options);

  Options options_;
  std::vector<Patterns> patterns_;  // One a rule.
};

// Column `column` of a definition is a new series that broke a limit.
struct Breach {
  uint32_t column = 0;
  Limit limit = Limit::kJobs;
  LimitAction action = LimitAction::kReject;  // What was done, which may be less than was asked.
  int rule = LimitPolicy::kNoRule;            // Whose number it is; of a total kNoRule.
  // The first of the definition's labels that is at fault; -1 if none in particular is.
  int label = -1;
};

}  // namespace tacho::storage
