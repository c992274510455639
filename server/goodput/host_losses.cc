#include "server/goodput/host_losses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/check.h"

namespace tacho::server::goodput {
namespace {

constexpr std::array<absl::string_view, kLossReasons> kReasonNames = {
    "input", "compute", "communication", "checkpoint"};
// Makes the median of absolute differences a standard deviation, for normal noise.
constexpr double kMadToDeviation = 1.4826;

bool IsRecorded(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
double Known(double seconds) { return IsRecorded(seconds) ? seconds : 0; }

// With an even number of values the lower one of the middle two: of two hosts one is the usual.
double LowerMedian(std::vector<double> values) {
  TACHO_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

using Slowest = std::map<size_t, const OwnWork*>;  // By host.

Slowest SlowestOfHosts(const std::vector<HostLosses::TaskStep>& tasks) {
  Slowest slowest;
  for (const auto& [host, own] : tasks) {
    const OwnWork*& of_host = slowest[host];
    if (of_host == nullptr || own.total > of_host->total) of_host = &own;
  }
  return slowest;
}

LossReason ReasonOf(const OwnWork& own, const Slowest& all) {
  size_t reason = 0;
  double most = -INFINITY;
  for (size_t phase = 0; phase < kLossReasons; ++phase) {
    std::vector<double> values;
    for (const auto& [host, one] : all) values.push_back(one->phases[phase]);
    const double excess = own.phases[phase] - LowerMedian(std::move(values));
    if (excess <= most) continue;
    most = excess;
    reason = phase;
  }
  return static_cast<LossReason>(reason);
}

}  // namespace

absl::string_view LossReasonName(LossReason reason) {
  return kReasonNames.at(static_cast<size_t>(reason));
}

bool OwnWorkOf(const RecordedStep& recorded, OwnWork* own) {
  const bool waits = IsRecorded(recorded.comm_wait) && IsRecorded(recorded.step);
  const bool computes = IsRecorded(recorded.compute);
  if (!waits && !computes) return false;
  *own = {};
  const auto phase = [own](LossReason reason) -> double& {
    return own->phases[static_cast<size_t>(reason)];
  };
  phase(LossReason::kInput) = Known(recorded.input);
  phase(LossReason::kCheckpoint) = Known(recorded.checkpoint);
  phase(LossReason::kCompute) = Known(recorded.compute);
  const double known = Known(recorded.input) + Known(recorded.checkpoint) + Known(recorded.compute);
  own->total = known;
  if (!waits) return true;
  const double rest = std::max(0.0, recorded.step - recorded.comm_wait - known);
  phase(computes ? LossReason::kCommunication : LossReason::kCompute) += rest;
  own->total += rest;
  return true;
}

HostLosses::StepLoss HostLosses::AddStep(const std::vector<TaskStep>& tasks, double steps,
                                         double most_seconds) {
  const Slowest hosts = SlowestOfHosts(tasks);
  if (hosts.size() < kLeastHosts || !(steps > 0)) return {};
  ++judged_;
  std::vector<double> values;
  for (const auto& [host, own] : hosts) values.push_back(own->total);
  const double middle = LowerMedian(values);
  for (double& value : values) value = std::abs(value - middle);
  const double deviation = kMadToDeviation * LowerMedian(std::move(values));
  const double ratio = hosts.size() < kFewHosts ? kFewHostsRatio : kLeastRatio;
  const double threshold = std::max({ratio * middle, kDeviations * deviation, kLeastSeconds});
  std::vector<std::pair<double, size_t>> slow;  // Ascending by own work beyond the median.
  for (const auto& [host, own] : hosts) {
    if (own->total - middle > threshold) slow.emplace_back(own->total - middle, host);
  }
  if (slow.empty()) return {};
  std::sort(slow.begin(), slow.end());
  const double lost = slow.back().first * steps;
  const double scale =
      most_seconds >= lost ? steps : std::max(0.0, most_seconds) / slow.back().first;
  double share = 0;
  double at = 0;
  for (size_t i = 0; i < slow.size(); ++i) {
    share += (slow[i].first - at) / static_cast<double>(slow.size() - i);
    at = slow[i].first;
    const size_t host = slow[i].second;
    const LossReason reason = ReasonOf(*hosts.at(host), hosts);
    losses_[host][static_cast<size_t>(reason)] += share * scale;
  }
  return {.seconds = std::min(lost, std::max(0.0, most_seconds)), .median_seconds = middle};
}

}  // namespace tacho::server::goodput
