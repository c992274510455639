// How fast a job steps and how well its chips are used, from its newest steps and its attributes.
// Pure. docs/goodput.md defines each figure for users.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/goodput/ledger.h"

namespace tacho::server::goodput {

// nullopt where what a figure needs is not recorded. Seconds.
struct StepFigures {
  uint64_t sampled = 0;  // Step times.
  // Nearest rank: the smallest value that at least the share q of the values do not exceed.
  std::optional<double> median, p90, p99;
  std::optional<double> mean;
  std::optional<double> mad;    // Median of |t - median|, without a factor.
  std::optional<double> ideal;  // Mean of those that are at most median + 3 MAD.
  std::optional<double> mfu;    // 0..1
  std::optional<double> peak_flops;
  std::string peak_source;
  std::optional<double> tokens_per_second;
  std::optional<int64_t> last_step;
  std::optional<int64_t> planned_steps;
  std::optional<double> progress;  // 0..1
  std::optional<double> remaining_seconds;

  bool operator==(const StepFigures& other) const = default;
};

// Those of the samples that have one, in their order.
std::vector<double> StepTimesOf(const std::deque<StepSample>& samples);

using AttemptAttributes = std::map<std::string, std::string>;

// `samples` are ascending by step. An attribute that is not a positive number is as if absent.
// `from_zero`: an attempt of the job began at step 0.
StepFigures FiguresOf(const std::deque<StepSample>& samples, const AttemptAttributes& attributes,
                      bool from_zero);

}  // namespace tacho::server::goodput
