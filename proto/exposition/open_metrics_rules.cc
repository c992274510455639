// The rules of OpenMetrics that concern a family as a whole: which suffixes a type allows, which
// samples belong together, and in which order.
#include "proto/exposition/open_metrics_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/exposition/exposition_scanner.h"

namespace tacho {
namespace {

const std::string* FindLabel(const ExpositionSample& sample, absl::string_view name) {
  for (const auto& label : sample.labels) {
    if (label.first == name) return &label.second;
  }
  return nullptr;
}

bool IsOneOf(absl::string_view word, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

absl::Status BrokenRule(absl::string_view rule) { return absl::InvalidArgumentError(rule); }

// Returns the value of label le, which must be spelt "+Inf" if it is infinite.
std::optional<double> UpperBound(const ExpositionSample& sample) {
  const std::string* const le = FindLabel(sample, "le");
  if (le == nullptr) return std::nullopt;
  const std::optional<double> bound = ParseExpositionNumber(*le);
  if (!bound || std::isnan(*bound)) return std::nullopt;
  if (std::isinf(*bound) && *le != "+Inf") return std::nullopt;
  return bound;
}

absl::Status CheckLabels(const ExpositionFamily& family, absl::string_view suffix,
                         const ExpositionSample& sample) {
  if (family.type == FamilyType::kStateSet && FindLabel(sample, family.name) == nullptr) {
    return BrokenRule("a state without the label that is named like its family");
  }
  if (suffix == "_bucket" && !UpperBound(sample)) {
    return BrokenRule("a bucket without a label le that is a number or +Inf");
  }
  if (family.type == FamilyType::kSummary && suffix.empty()) {
    const std::string* const text = FindLabel(sample, "quantile");
    const auto quantile = text == nullptr ? std::nullopt : ParseExpositionNumber(*text);
    if (!quantile || !(*quantile >= 0 && *quantile <= 1)) {
      return BrokenRule("a quantile without a label quantile from 0 to 1");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValue(const ExpositionFamily& family, absl::string_view suffix, double value) {
  if (IsOneOf(suffix, {"_bucket", "_count", "_gcount"}) &&
      (!std::isfinite(value) || value != std::floor(value))) {
    return BrokenRule("a count that is no whole number");
  }
  if (family.type == FamilyType::kStateSet && value != 0 && value != 1) {
    return BrokenRule("a state that is neither 0 nor 1");
  }
  if (family.type == FamilyType::kInfo && value != 1) return BrokenRule("an info that is not 1");
  if (family.type == FamilyType::kSummary && suffix.empty() && value < 0) {
    return BrokenRule("a quantile below 0");
  }
  if (IsOneOf(suffix, {"_total", "_sum", "_count", "_bucket", "_gcount", "_gsum"}) &&
      std::isnan(value)) {
    return BrokenRule("a counter, count or sum that is NaN");
  }
  if (IsOneOf(suffix, {"_total", "_sum", "_count", "_bucket", "_gcount"}) && value < 0) {
    return BrokenRule("a counter, count or sum below 0");
  }
  return absl::OkStatus();
}

// Collects what is known of one histogram at one time.
struct Buckets {
  std::optional<double> bound;  // The last bucket's.
  double in_bucket = 0;         // Its value.
  std::optional<double> count;
  bool sum = false;
  bool gauge_sum = false;
  bool negative_gauge_sum = false;
  bool negative_bounds = false;

  absl::Status Add(absl::string_view suffix, const ExpositionSample& sample) {
    if (suffix == "_bucket") {
      const double next = *UpperBound(sample);
      if (next < 0) negative_bounds = true;
      if (bound && next <= *bound) return BrokenRule("buckets out of order");
      if (sample.value < in_bucket) return BrokenRule("a bucket with less than the one below it");
      bound = next;
      in_bucket = sample.value;
    } else if (suffix == "_count" || suffix == "_gcount") {
      count = sample.value;
    } else if (suffix == "_sum") {
      sum = true;
    } else if (suffix == "_gsum") {
      gauge_sum = true;
      negative_gauge_sum = sample.value < 0;
    }
    return absl::OkStatus();
  }

  absl::Status Check() const {
    if (!bound || !std::isinf(*bound)) return BrokenRule("a histogram without the bucket +Inf");
    if (count && in_bucket != *count) return BrokenRule("a count that is not that of bucket +Inf");
    if ((sum || gauge_sum) && !count) return BrokenRule("a sum without a count");
    if (!sum && !gauge_sum && count) return BrokenRule("a count without a sum");
    if (negative_bounds && sum) return BrokenRule("a sum with bounds below 0");
    if (!negative_bounds && negative_gauge_sum) {
      return BrokenRule("a sum below 0 without bounds below 0");
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::span<const absl::string_view> SuffixesOf(FamilyType type) {
  static constexpr absl::string_view kPlain[] = {""};
  static constexpr absl::string_view kCounter[] = {"_total", "_created"};
  static constexpr absl::string_view kSummary[] = {"", "_count", "_sum", "_created"};
  static constexpr absl::string_view kHistogram[] = {"_count", "_sum", "_bucket", "_created"};
  static constexpr absl::string_view kGaugeHistogram[] = {"_gcount", "_gsum", "_bucket"};
  static constexpr absl::string_view kInfo[] = {"_info"};
  switch (type) {
    case FamilyType::kCounter:
      return kCounter;
    case FamilyType::kSummary:
      return kSummary;
    case FamilyType::kHistogram:
      return kHistogram;
    case FamilyType::kGaugeHistogram:
      return kGaugeHistogram;
    case FamilyType::kInfo:
      return kInfo;
    default:
      return kPlain;
  }
}

absl::Status CheckSample(const ExpositionFamily& family, absl::string_view suffix,
                         const ExpositionSample& sample, bool has_exemplar) {
  TACHO_RETURN_IF_ERROR(CheckLabels(family, suffix, sample));
  TACHO_RETURN_IF_ERROR(CheckValue(family, suffix, sample.value));
  if (!has_exemplar) return absl::OkStatus();
  const bool histogram =
      family.type == FamilyType::kHistogram || family.type == FamilyType::kGaugeHistogram;
  if ((histogram && suffix == "_bucket") ||
      (family.type == FamilyType::kCounter && suffix == "_total")) {
    return absl::OkStatus();
  }
  return BrokenRule("an exemplar on what is neither a bucket nor a counter");
}

std::string GroupOf(const ExpositionFamily& family, absl::string_view suffix,
                    const ExpositionSample& sample) {
  // For an info nobody knows which labels belong to the metric.
  if (family.type == FamilyType::kInfo) return "";
  const bool bucket = suffix == "_bucket";
  const bool quantile = family.type == FamilyType::kSummary && suffix.empty();
  std::vector<std::pair<absl::string_view, absl::string_view>> labels;
  for (const auto& [name, value] : sample.labels) {
    if ((bucket && name == "le") || (quantile && name == "quantile")) continue;
    if (family.type == FamilyType::kStateSet && name == family.name) continue;
    labels.emplace_back(name, value);
  }
  std::sort(labels.begin(), labels.end());
  std::string group;
  // With lengths, no two lists of labels are one text.
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&group, name, "=", value.size(), ":", value, ",");
  }
  return group;
}

absl::Status CheckHistogram(const ExpositionFamily& family,
                            std::span<const ExpositionSample> samples) {
  std::optional<std::pair<std::string, std::optional<int64_t>>> now;
  Buckets buckets;
  for (const ExpositionSample& sample : samples) {
    const absl::string_view suffix = absl::string_view(sample.name).substr(family.name.size());
    std::pair<std::string, std::optional<int64_t>> group{GroupOf(family, suffix, sample),
                                                         sample.time_ns};
    if (!now || *now != group) {
      if (now) {
        if (absl::Status status = buckets.Check(); !status.ok()) return status;
      }
      buckets = {};
      now = std::move(group);
    }
    if (absl::Status status = buckets.Add(suffix, sample); !status.ok()) return status;
  }
  return now ? buckets.Check() : absl::OkStatus();
}

}  // namespace tacho
