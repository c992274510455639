#include "server/goodput/step_figures.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "proto/base/progress.h"
#include "server/goodput/device_peak.h"

namespace tacho::server::goodput {
namespace {

std::optional<double> Positive(const AttemptAttributes& attributes, const char* key) {
  const auto found = attributes.find(key);
  double value = 0;
  if (found == attributes.end() || !absl::SimpleAtod(found->second, &value)) return std::nullopt;
  if (!std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

// The list is sorted and not empty.
double NearestRank(const std::vector<double>& sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(1.0, rank)) - 1];
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void AddStepTimes(std::vector<double> seconds, StepFigures* figures) {
  figures->sampled = seconds.size();
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  const double median = NearestRank(seconds, 0.5);
  figures->median = median;
  figures->p90 = NearestRank(seconds, 0.9);
  figures->p99 = NearestRank(seconds, 0.99);
  figures->mean = Mean(seconds);
  std::vector<double> distances;
  for (const double value : seconds) distances.push_back(std::abs(value - median));
  std::sort(distances.begin(), distances.end());
  figures->mad = NearestRank(distances, 0.5);
  const double most = median + 3 * *figures->mad;
  std::erase_if(seconds, [most](double value) { return value > most; });
  figures->ideal = Mean(seconds);  // The median is in it.
}

void AddMfu(const AttemptAttributes& attributes, StepFigures* figures) {
  figures->peak_flops = Positive(attributes, "device_peak_flops");
  if (figures->peak_flops.has_value()) {
    figures->peak_source = "device_peak_flops";
  } else if (const auto kind = attributes.find("device_kind"); kind != attributes.end()) {
    const DevicePeak* peak = FindDevicePeak(kind->second);
    if (peak != nullptr) {
      figures->peak_flops = peak->flops;
      figures->peak_source = std::string(peak->kind);
    }
  }
  const auto flops = Positive(attributes, "flops_per_step");
  const auto devices = Positive(attributes, "device_count");
  if (!figures->peak_flops || !flops || !devices || !figures->mean || *figures->mean <= 0) return;
  figures->mfu = *flops / (*figures->mean * *devices * *figures->peak_flops);
}

// Growth of the counter over the samples; one that fell in between was reset.
std::optional<double> CountedTokens(const std::deque<StepSample>& samples) {
  const StepSample* first = nullptr;
  const StepSample* previous = nullptr;
  double grown = 0;
  for (const StepSample& sample : samples) {
    if (!std::isfinite(sample.tokens)) continue;
    if (first == nullptr) first = &sample;
    if (previous != nullptr) {
      grown += sample.tokens < previous->tokens ? sample.tokens : sample.tokens - previous->tokens;
    }
    previous = &sample;
  }
  if (first == nullptr || previous->time_ns <= first->time_ns) return std::nullopt;
  return grown * 1e9 / static_cast<double>(previous->time_ns - first->time_ns);
}

void AddProgress(const std::deque<StepSample>& samples, const AttemptAttributes& attributes,
                 bool from_zero, StepFigures* figures) {
  if (samples.empty()) return;
  const StepSample& newest = samples.back();
  figures->last_step = newest.step;
  const auto planned = Positive(attributes, "planned_steps");
  if (!planned || *planned < 1 || *planned >= 9e18) return;
  figures->planned_steps = static_cast<int64_t>(*planned);
  const int64_t done = StepsDone(newest.step, from_zero);
  figures->progress = std::clamp(ProgressRatio(done, *figures->planned_steps), 0.0, 1.0);
  const double steps = static_cast<double>(newest.step) - static_cast<double>(samples.front().step);
  if (steps <= 0) return;
  const double wall = static_cast<double>(newest.time_ns - samples.front().time_ns) / 1e9;
  figures->remaining_seconds = std::max(0.0, *planned - static_cast<double>(done)) * wall / steps;
}

}  // namespace

std::vector<double> StepTimesOf(const std::deque<StepSample>& samples) {
  std::vector<double> seconds;
  for (const StepSample& sample : samples) {
    if (std::isfinite(sample.seconds) && sample.seconds >= 0) seconds.push_back(sample.seconds);
  }
  return seconds;
}

StepFigures FiguresOf(const std::deque<StepSample>& samples, const AttemptAttributes& attributes,
                      bool from_zero) {
  StepFigures figures;
  AddStepTimes(StepTimesOf(samples), &figures);
  AddMfu(attributes, &figures);
  figures.tokens_per_second = CountedTokens(samples);
  const auto tokens = Positive(attributes, "tokens_per_step");
  if (!figures.tokens_per_second && tokens && figures.mean && *figures.mean > 0) {
    figures.tokens_per_second = *tokens / *figures.mean;
  }
  AddProgress(samples, attributes, from_zero, &figures);
  return figures;
}

}  // namespace tacho::server::goodput
