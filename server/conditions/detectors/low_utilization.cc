#include "server/conditions/detectors/low_utilization.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "server/conditions/measures/chip_use.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinSteps = 20;
constexpr double kMinSeconds = 20;
constexpr int64_t kUnusedPart = 5;
constexpr double kUnused = 0.02;
constexpr double kUsed = 0.3;

std::optional<double> Attribute(const JobWindow& window, const std::string& key) {
  const auto found = window.attributes.find(key);
  double value = 0;
  if (found == window.attributes.end() || !absl::SimpleAtod(found->second, &value) ||
      !(value > 0)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> Mfu(const JobWindow& window, double step_seconds) {
  const auto flops = Attribute(window, "flops_per_step");
  const auto devices = Attribute(window, "device_count");
  const auto peak = Attribute(window, "device_peak_flops");
  if (!flops || !devices || !peak || !(step_seconds > 0)) return std::nullopt;
  return *flops / (step_seconds * *devices * *peak);
}

void NameChips(const std::vector<ChipMean>& chips, double below, Finding* finding) {
  for (const ChipMean& chip : chips) {
    if (finding->culprits.size() == kMaxCulprits || chip.value > below) break;
    finding->culprits.push_back({.task = std::nullopt,
                                 .host = chip.chip->host,
                                 .chip = chip.chip->chip,
                                 .metric = "",
                                 .step = std::nullopt,
                                 .score = 1 - chip.value});
  }
}

std::vector<ChipMean> LeastFirst(std::vector<ChipMean> chips) {
  std::stable_sort(chips.begin(), chips.end(),
                   [](const ChipMean& a, const ChipMean& b) { return a.value < b.value; });
  return chips;
}

double MedianOf(const std::vector<ChipMean>& chips) {
  std::vector<double> values;
  for (const ChipMean& chip : chips) values.push_back(chip.value);
  return Median(std::move(values));
}

Finding Low(const char* reason, const char* what, double value, double bound) {
  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = reason;
  finding.message =
      absl::StrFormat("%s is %.1f%%, less than %.0f%%", what, 100 * value, 100 * bound);
  finding.figures = {{"value", value, "1"}, {"threshold", bound, "1"}};
  return finding;
}

// `chips` are the least busy first.
Finding IdleChips(const std::vector<ChipMean>& chips) {
  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  const auto unused = static_cast<size_t>(std::count_if(
      chips.begin(), chips.end(), [](const ChipMean& chip) { return chip.value < kUnused; }));
  finding.reason = "IdleChips";
  finding.message = absl::StrFormat(
      "%d of %d chips do nothing while the others are %.0f%% busy; the first is "
      "chip %s of %s",
      unused, chips.size(), 100 * MedianOf(chips), chips.front().chip->chip,
      chips.front().chip->host);
  finding.figures = {{"idle_chips", static_cast<double>(unused), "1"},
                     {"chips", static_cast<double>(chips.size()), "1"},
                     {"chip_busy_median", MedianOf(chips), "1"}};
  NameChips(chips, kUnused, &finding);
  return finding;
}

}  // namespace

Finding DetectLowUtilization(const JobWindow& window, const LowUtilizationSettings& settings) {
  if (window.ended) return NotPresent();
  const int64_t span_ns = absl::ToInt64Nanoseconds(settings.span);
  const std::vector<StepTime> steps =
      NewestOf(NetStepTimes(window), window.now_ns, span_ns, kMinSteps);
  if (steps.size() < kMinSteps || steps.back().time_ns < window.now_ns - span_ns) {
    return NotJudged();
  }
  const int64_t from_ns = steps.front().time_ns;
  const int64_t to_ns = steps.back().time_ns;
  if (static_cast<double>(to_ns - from_ns) < kMinSeconds * 1e9) return NotJudged();

  const double step_seconds = MedianSeconds(steps);
  const std::vector<ChipMean> tensor =
      LeastFirst(ChipMeans(window, Signal::kChipTensorBusy, from_ns, to_ns));
  const std::vector<ChipMean> busy =
      LeastFirst(ChipMeans(window, Signal::kChipBusy, from_ns, to_ns));
  const std::vector<ChipMean> lately = LeastFirst(ChipMeans(
      window, Signal::kChipBusy, std::max(from_ns, to_ns - span_ns / kUnusedPart), to_ns));
  const std::optional<double> mfu = Mfu(window, step_seconds);
  if (!mfu.has_value() && tensor.empty() && busy.empty()) return NotJudged();

  Finding finding = NotPresent();
  if (!lately.empty() && lately.front().value < kUnused && MedianOf(lately) > kUsed) {
    finding = IdleChips(lately);
  } else if (mfu.has_value() && *mfu < settings.min_mfu) {
    finding = Low("LowMfu", "The model FLOPs utilization", *mfu, settings.min_mfu);
    NameChips(busy, settings.min_busy, &finding);
  } else if (!tensor.empty() && *MeanOf(tensor) < settings.min_tensor) {
    finding = Low("LowTensorActivity", "Use of the chips' matrix units", *MeanOf(tensor),
                  settings.min_tensor);
    NameChips(tensor, settings.min_tensor, &finding);
  } else if (!busy.empty() && *MeanOf(busy) < settings.min_busy) {
    finding = Low("LowDutyCycle", "The chips' duty cycle", *MeanOf(busy), settings.min_busy);
    NameChips(busy, settings.min_busy, &finding);
  }
  if (!finding.present) return finding;
  finding.step = steps.back().step;
  finding.figures.push_back({"step_time_median", step_seconds, "s"});
  return finding;
}

}  // namespace tacho::server::conditions
