// How much a metric of one run may differ from that of another.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/ctl/views/comparison.h"

namespace tacho::ctl {

// The mean of a counter is the rate at which it grows.
struct Threshold {
  enum class Statistic { kMean, kLast, kMin, kMax };
  enum class Direction { kEither, kAbove, kBelow };

  std::string metric;
  Statistic statistic = Statistic::kMean;
  Direction direction = Direction::kEither;  // Which change is limited.
  double limit = 0;                          // 0 or more; a fraction if relative.
  bool relative = false;

  // "mean at most 2 % above"
  std::string Text() const;
};

// METRIC[:STATISTIC]:LIMIT, of which LIMIT is [+|-]NUMBER[%] and STATISTIC mean, last, min or max:
// "loss:+2%" limits growth, "accuracy:last:-0.5%" decline, "lr:0" any change. The metric's name may
// contain ':'.
//   INVALID_ARGUMENT  the text says what was expected.
absl::StatusOr<Threshold> ParseThreshold(absl::string_view text);

struct Verdict {
  Threshold threshold;
  bool passed = false;
  // From the first run to the second; NaN if it is not known. A fraction if relative.
  double change = kNotANumber;
  std::string reason;  // Why it failed.
};

// Judges the second subject against the first. A threshold that cannot be checked (no such metric,
// nothing to compare) has failed, and so has a metric whose values became NaN or infinite.
Verdict Judge(const Threshold& threshold, const Comparison& comparison);

// "mean", "last", "min", "max".
std::string StatisticName(Threshold::Statistic statistic);

}  // namespace tacho::ctl
