// Parses the thresholds of a report and judges them. A threshold that cannot be checked has failed,
// so that a broken metric never passes a gate.
#include "client/ctl/views/threshold.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/text/format.h"

namespace tacho::ctl {
namespace {

using Statistic = Threshold::Statistic;
using Direction = Threshold::Direction;

constexpr Statistic kStatistics[] = {Statistic::kMean, Statistic::kLast, Statistic::kMin,
                                     Statistic::kMax};

double ValueOf(const v1::ComparedSummary& summary, Statistic statistic) {
  switch (statistic) {
    case Statistic::kLast:
      return summary.last();
    case Statistic::kMin:
      return summary.min();
    case Statistic::kMax:
      return summary.max();
    case Statistic::kMean:
      break;
  }
  return summary.avg();
}

// NaN if it is not known.
double ChangeFor(const Threshold& threshold, const v1::CompareMetric& metric) {
  if (threshold.statistic == Statistic::kMean) {
    const Change change = ChangeOf(metric, 1);
    if (!change.known) return kNotANumber;
    return threshold.relative && change.difference != 0 ? change.relative : change.difference;
  }
  const v1::ComparedSummary& first = metric.columns(0).summary();
  const v1::ComparedSummary& second = metric.columns(1).summary();
  if (first.count() == 0 || second.count() == 0) return kNotANumber;
  const double before = ValueOf(first, threshold.statistic);
  const double difference = ValueOf(second, threshold.statistic) - before;
  if (!threshold.relative || difference == 0) return difference;
  return before == 0 ? kNotANumber : difference / std::fabs(before);
}

bool Exceeds(const Threshold& threshold, double change) {
  switch (threshold.direction) {
    case Direction::kAbove:
      return change > threshold.limit;
    case Direction::kBelow:
      return change < -threshold.limit;
    case Direction::kEither:
      break;
  }
  return std::fabs(change) > threshold.limit;
}

std::string LimitText(const Threshold& threshold) {
  return threshold.relative ? absl::StrCat(ReadableNumber(100 * threshold.limit), " %")
                            : ReadableNumber(threshold.limit);
}

std::string Failure(const Threshold& threshold, const v1::CompareMetric* metric, double change) {
  if (metric == nullptr) return "the runs do not both have this metric";
  const v1::ComparedSummary& first = metric->columns(0).summary();
  const v1::ComparedSummary& second = metric->columns(1).summary();
  if (first.count() == 0 || second.count() == 0) return "the runs do not both have this metric";
  if (second.non_finite() > 0 && first.non_finite() == 0) {
    return absl::StrCat(Count(second.non_finite(), "value"), " NaN or infinite");
  }
  if (!std::isfinite(change)) {
    const bool compared = threshold.statistic != Statistic::kMean || ChangeOf(*metric, 1).known;
    if (compared) return "not a number; the first run may be 0 there: give a limit without %";
    return IsCount(metric->metric()) ? "nothing to compare: a run has no two samples of it in time"
                                     : "nothing to compare: the runs share no step or time";
  }
  if (!Exceeds(threshold, change)) return "";
  return absl::StrCat("more than ", LimitText(threshold));
}

}  // namespace

std::string StatisticName(Statistic statistic) {
  switch (statistic) {
    case Statistic::kLast:
      return "last";
    case Statistic::kMin:
      return "min";
    case Statistic::kMax:
      return "max";
    case Statistic::kMean:
      break;
  }
  return "mean";
}

std::string Threshold::Text() const {
  const char* where = direction == Direction::kAbove   ? " above"
                      : direction == Direction::kBelow ? " below"
                                                       : " away";
  return absl::StrCat(StatisticName(statistic), " at most ", LimitText(*this), where);
}

absl::StatusOr<Threshold> ParseThreshold(absl::string_view text) {
  absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "': expected METRIC[:mean|last|min|max]:LIMIT, like loss:+2%, "
                   "accuracy:last:-0.5% or learning_rate:0"));
  Threshold threshold;
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return bad;
  absl::string_view limit = text.substr(colon + 1);
  absl::string_view metric = text.substr(0, colon);
  if (absl::ConsumePrefix(&limit, "+")) {
    threshold.direction = Direction::kAbove;
  } else if (absl::ConsumePrefix(&limit, "-")) {
    threshold.direction = Direction::kBelow;
  }
  threshold.relative = absl::ConsumeSuffix(&limit, "%");
  if (!absl::SimpleAtod(limit, &threshold.limit) || !std::isfinite(threshold.limit) ||
      threshold.limit < 0) {
    return bad;
  }
  if (threshold.relative) threshold.limit /= 100;
  for (const Statistic statistic : kStatistics) {
    if (!absl::ConsumeSuffix(&metric, absl::StrCat(":", StatisticName(statistic)))) continue;
    threshold.statistic = statistic;
    break;
  }
  if (metric.empty()) return bad;
  threshold.metric = std::string(metric);
  return threshold;
}

Verdict Judge(const Threshold& threshold, const Comparison& comparison) {
  const auto found =
      std::find_if(comparison.metrics.begin(), comparison.metrics.end(),
                   [&](const auto& metric) { return metric.metric().name() == threshold.metric; });
  const v1::CompareMetric* metric = found == comparison.metrics.end() ? nullptr : &*found;
  Verdict verdict{threshold, false, kNotANumber, ""};
  if (metric != nullptr) {
    verdict.change = ChangeFor(threshold, *metric);
  }
  verdict.reason = Failure(threshold, metric, verdict.change);
  verdict.passed = verdict.reason.empty();
  return verdict;
}

}  // namespace tacho::ctl
