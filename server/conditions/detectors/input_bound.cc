#include "server/conditions/detectors/input_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/conditions/measures/chip_use.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinSteps = 10;

struct Waiting {
  const TaskWindow* task = nullptr;
  double share = 0;
  double seconds = 0;  // A step.
};

// Each task's, the longest first.
std::vector<Waiting> MeasureWaiting(const JobWindow& window, int64_t from_ns, double step_mean) {
  std::vector<Waiting> waiting;
  for (const TaskWindow& task : window.tasks) {
    const Track* data = FindTrack(task.tracks, Signal::kDataWait);
    if (data == nullptr) continue;
    const std::optional<double> wait = MeanOver(*data, from_ns, window.now_ns);
    if (!wait.has_value()) continue;
    double step = step_mean;
    if (const Track* own = FindTrack(task.tracks, Signal::kStepTime)) {
      step = MeanOver(*own, from_ns, window.now_ns).value_or(step);
    }
    if (!(step > 0)) continue;
    waiting.push_back({.task = &task, .share = std::min(1.0, *wait / step), .seconds = *wait});
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Waiting& a, const Waiting& b) { return a.share > b.share; });
  return waiting;
}

}  // namespace

Finding DetectInputBound(const JobWindow& window, const InputBoundSettings& settings) {
  if (window.ended) return NotPresent();
  const int64_t span_ns = absl::ToInt64Nanoseconds(settings.span);
  const std::vector<StepTime> steps =
      NewestOf(NetStepTimes(window), window.now_ns, span_ns, kMinSteps);
  if (steps.size() < kMinSteps || steps.back().time_ns < window.now_ns - span_ns) {
    return NotJudged();
  }
  // The first one's own time belongs to it.
  const int64_t from_ns = steps.front().time_ns - 1;
  double step_mean = 0;
  for (const StepTime& step : steps) step_mean += step.seconds;
  step_mean /= static_cast<double>(steps.size());
  const std::vector<Waiting> waiting = MeasureWaiting(window, from_ns, step_mean);
  if (waiting.empty()) return NotJudged();

  std::vector<double> shares;
  for (const Waiting& one : waiting) shares.push_back(one.share);
  const double share = Median(std::move(shares));
  const std::optional<double> busy =
      MeanOf(ChipMeans(window, Signal::kChipBusy, from_ns, window.now_ns));
  const bool present = busy.has_value() ? share > settings.min_wait && 1 - *busy > settings.min_idle
                                        : share > settings.min_idle;
  if (!present) return NotPresent();

  Finding finding{.judged = true, .present = true, .severity = Severity::kWarning};
  finding.reason = busy.has_value() ? "WaitingForInput" : "WaitingForInputChipsUnknown";
  finding.step = steps.back().step;
  finding.figures = {
      {"data_wait_share", share, "1"},
      {"threshold_data_wait_share", busy.has_value() ? settings.min_wait : settings.min_idle, "1"},
      {"step_time_mean", step_mean, "s"},
      {"data_wait_longest", waiting.front().seconds, "s"}};
  if (busy.has_value()) {
    finding.figures.push_back({"chips_idle_share", 1 - *busy, "1"});
    finding.figures.push_back({"threshold_chips_idle_share", settings.min_idle, "1"});
  }
  std::set<std::string> named;
  for (const Waiting& one : waiting) {
    if (finding.culprits.size() == kMaxCulprits) break;
    if (!named.insert(one.task->host).second) continue;
    finding.culprits.push_back({.task = one.task->task,
                                .host = one.task->host,
                                .chip = "",
                                .metric = "",
                                .step = std::nullopt,
                                .score = one.share});
  }
  finding.message =
      absl::StrFormat("%.0f%% of each step of %.3g s is waiting for input", 100 * share, step_mean);
  finding.message += busy.has_value() ? absl::StrFormat("; the chips are idle %.0f%% of the time",
                                                        100 * (1 - *busy))
                                      : "; what the chips do is not known";
  return finding;
}

}  // namespace tacho::server::conditions
