// InputBound: chips are idle because the job waits for its input.
//
// Definition. Over the last `span` of steps, at least 10 of them:
//   wait = the median over tasks of  mean(data_wait) / mean(step time)
//   idle = 1 - the mean duty cycle of the job's chips
// The job is input bound if wait > min_wait and idle > min_idle; without figures of chips, if
// wait > min_idle: a trainer that waits has no work for its chips, unless it has dispatched ahead.
// The time between rows replaces a step time that is not recorded. Steps that contain a checkpoint
// or an evaluation do not count as steps, but their time is in the means.
//
// The median leaves out single hosts with slow input: they are Straggling (SlowInput). Culprits:
// the tasks that wait longest, one for each host. Score: their share of waiting.
//
// Needs data_wait of tasks. Limits: without a duty cycle, input that another thread awaits looks
// like input that blocks the chips. A chip that spins in a collective counts as busy, so the chips
// of hosts that wait for another host's input may seem to work.
//
// Where tasks record the stages of their input (input_stage), the reason and the message name the
// stage that limits: measures/input_stages.h.
//
// Sources. The share of the step: TensorFlow Profiler's input-pipeline analyzer, which calls 5 %
// moderate and 20 % high. The bounds are ours.
//
//
// LowUtilization: the job steps, but its chips do little.
//
// Definition. Over the last `span` of steps, the first of these that is below its bound (0 switches
// it off):
//   mfu          flops_per_step / (median step time * device_count * device_peak_flops), from the
//                attributes of the attempt                                       < min_mfu
//   matrix units the mean of chip_tensor_busy over the job's chips               < min_tensor
//   duty cycle   the mean of chip_busy over them                                 < min_busy
// Before these, IdleChips: over the last fifth of `span` the mean chip_busy of some chips is below
// 0.02 while that of the median chip is above 0.3; the culprits are those chips (score: 1 - busy).
// For the other reasons the culprits are the least busy chips.
//
// Needs the attributes, or figures of chips, and 20 steps over at least 20 s. While no step passes
// it is not judged: that is Stalled. Limits: a duty cycle is time with any work at all, however
// little. MFU measures the work, but only as well as flops_per_step does: what it counts of
// attention and recomputing is the trainer's convention.
//
// Sources. MFU: PaLM (arXiv 2204.02311), appendix B. Published values of large runs are 0.3 to 0.55
// (MegaScale 0.55), those of small models far lower, so the bound is far below. Bounds are ours.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/input_stages.h"
#include "server/conditions/measures/step_times.h"
#include "server/conditions/window/signal.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinInputSteps = 10;
constexpr size_t kMinUseSteps = 20;
constexpr double kMinUseSeconds = 20;
// IdleChips: chips below kUnused over the newest 1/kUnusedPart of the span, while the median is
// above kUsed.
constexpr int64_t kUnusedPart = 5;
constexpr double kUnused = 0.02;
constexpr double kUsed = 0.3;

// The mean of a track's finite values with from_ns < time <= to_ns; nullopt if there is none.
std::optional<double> MeanOver(const Track& track, int64_t from_ns, int64_t to_ns) {
  double sum = 0;
  size_t count = 0;
  for (auto point = track.points.rbegin(); point != track.points.rend(); ++point) {
    if (point->time_ns > to_ns) continue;
    if (point->time_ns <= from_ns) break;
    if (!std::isfinite(point->value)) continue;
    sum += point->value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

struct ChipMean {
  const ChipWindow* chip = nullptr;
  double value = 0;
};

// The mean of a signal over the span, for each chip that has values, the lowest first.
std::vector<ChipMean> ChipMeans(const JobWindow& window, Signal signal, int64_t from_ns,
                                int64_t to_ns) {
  std::vector<ChipMean> means;
  for (const ChipWindow& chip : window.chips) {
    const Track* track = FindTrack(chip.tracks, signal);
    if (track == nullptr) continue;
    const std::optional<double> mean = MeanOver(*track, from_ns, to_ns);
    if (mean.has_value()) means.push_back({.chip = &chip, .value = *mean});
  }
  std::stable_sort(means.begin(), means.end(),
                   [](const ChipMean& a, const ChipMean& b) { return a.value < b.value; });
  return means;
}

std::vector<double> ValuesOf(const std::vector<ChipMean>& chips) {
  std::vector<double> values;
  for (const ChipMean& chip : chips) values.push_back(chip.value);
  return values;
}

// nullopt if there are no chips.
std::optional<double> MeanOf(const std::vector<ChipMean>& chips) {
  if (chips.empty()) return std::nullopt;
  double sum = 0;
  for (const ChipMean& chip : chips) sum += chip.value;
  return sum / static_cast<double>(chips.size());
}

// The newest steps; empty if there are too few, or if the job stands still.
std::vector<StepTime> NewestSteps(const JobWindow& window, int64_t span_ns, size_t min_steps) {
  std::vector<StepTime> steps = NewestOf(NetStepTimes(window), window.now_ns, span_ns, min_steps);
  if (steps.size() < min_steps || steps.back().time_ns < window.now_ns - span_ns) return {};
  return steps;
}

struct Waiting {
  const TaskWindow* task = nullptr;
  double share = 0;
  double seconds = 0;  // Per step.
};

// For each task that records it, the longest first.
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

double MeanSeconds(const std::vector<StepTime>& steps) {
  double sum = 0;
  for (const StepTime& step : steps) sum += step.seconds;
  return sum / static_cast<double>(steps.size());
}

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

void BlameChips(const std::vector<ChipMean>& chips, double below, Finding* finding) {
  for (const ChipMean& chip : chips) {
    if (chip.value > below) break;
    finding->BlameChip(chip.chip->host, chip.chip->chip, 1 - chip.value);
  }
}

// `chips` are the culprits, if they are below `chip_bound`.
Finding Low(const char* reason, const char* what, double value, double bound,
            const std::vector<ChipMean>& chips, double chip_bound) {
  Finding finding =
      Present(Severity::kWarning, reason,
              absl::StrFormat("%s is %.1f%%, below %.0f%%", what, 100 * value, 100 * bound));
  finding.figures = {{"value", value, "1"}, {"threshold", bound, "1"}};
  BlameChips(chips, chip_bound, &finding);
  return finding;
}

// `chips` are not empty, the least busy first.
Finding IdleChips(const std::vector<ChipMean>& chips) {
  TACHO_CHECK(!chips.empty());
  const auto unused = static_cast<size_t>(std::count_if(
      chips.begin(), chips.end(), [](const ChipMean& chip) { return chip.value < kUnused; }));
  const double median = Median(ValuesOf(chips));
  const ChipWindow& first = *chips.front().chip;
  Finding finding =
      Present(Severity::kWarning, "IdleChips",
              absl::StrFormat("%d of %d chips are idle while the others are %.0f%% busy; the first "
                              "is chip %s of %s",
                              unused, chips.size(), 100 * median, first.chip, first.host));
  finding.figures = {{"idle_chips", static_cast<double>(unused), "1"},
                     {"chips", static_cast<double>(chips.size()), "1"},
                     {"chip_busy_median", median, "1"}};
  BlameChips(chips, kUnused, &finding);
  return finding;
}

}  // namespace

Finding DetectInputBound(const JobWindow& window, const Progress::InputBound& settings) {
  if (window.ended) return NotPresent();
  const std::vector<StepTime> steps = NewestSteps(window, settings.span(), kMinInputSteps);
  if (steps.empty()) return NotJudged();
  // The first step's own row counts.
  const int64_t from_ns = steps.front().time_ns - 1;
  const double step_mean = MeanSeconds(steps);
  const std::vector<Waiting> waiting = MeasureWaiting(window, from_ns, step_mean);
  if (waiting.empty()) return NotJudged();

  std::vector<double> shares;
  for (const Waiting& one : waiting) shares.push_back(one.share);
  const double share = Median(std::move(shares));
  const std::optional<double> busy =
      MeanOf(ChipMeans(window, Signal::kChipBusy, from_ns, window.now_ns));
  const double min_wait = busy.has_value() ? settings.min_wait() : settings.min_idle();
  if (share <= min_wait || (busy.has_value() && 1 - *busy <= settings.min_idle())) {
    return NotPresent();
  }

  std::string message =
      absl::StrFormat("%.0f%% of each step of %.3g s is waiting for input", 100 * share, step_mean);
  message += busy.has_value()
                 ? absl::StrFormat("; the chips are idle %.0f%% of the time", 100 * (1 - *busy))
                 : "; the use of the chips is unknown";
  Finding finding = Present(Severity::kWarning,
                            busy.has_value() ? "WaitingForInput" : "WaitingForInputChipsUnknown",
                            std::move(message));
  finding.step = steps.back().step;
  finding.figures = {{"data_wait_share", share, "1"},
                     {"threshold_data_wait_share", min_wait, "1"},
                     {"step_time_mean", step_mean, "s"},
                     {"data_wait_longest", waiting.front().seconds, "s"}};
  if (busy.has_value()) {
    finding.AddFigure("chips_idle_share", 1 - *busy, "1");
    finding.AddFigure("threshold_chips_idle_share", settings.min_idle(), "1");
  }
  if (const auto stage = LimitingStage(window, from_ns, share * step_mean)) {
    finding.reason = stage->reason;
    absl::StrAppendFormat(&finding.message,
                          "; the stage %s of the input limits, with %.3g s a step", stage->name,
                          stage->seconds);
    finding.AddFigure("input_stage_seconds", stage->seconds, "s");
  }
  std::set<std::string> named;
  for (const Waiting& one : waiting) {
    if (named.insert(one.task->host).second) finding.BlameTask(*one.task, one.share);
  }
  return finding;
}

Finding DetectLowUtilization(const JobWindow& window, const Progress::LowUtilization& settings) {
  if (window.ended) return NotPresent();
  const std::vector<StepTime> steps = NewestSteps(window, settings.span(), kMinUseSteps);
  if (steps.empty()) return NotJudged();
  const int64_t from_ns = steps.front().time_ns;
  const int64_t to_ns = steps.back().time_ns;
  if (Seconds(to_ns - from_ns) < kMinUseSeconds) return NotJudged();

  const double step_seconds = MedianSeconds(steps);
  const std::vector<ChipMean> tensor = ChipMeans(window, Signal::kChipTensorBusy, from_ns, to_ns);
  const std::vector<ChipMean> busy = ChipMeans(window, Signal::kChipBusy, from_ns, to_ns);
  const std::vector<ChipMean> lately = ChipMeans(
      window, Signal::kChipBusy, std::max(from_ns, to_ns - settings.span() / kUnusedPart), to_ns);
  const std::optional<double> mfu = Mfu(window, step_seconds);
  if (!mfu.has_value() && tensor.empty() && busy.empty()) return NotJudged();

  Finding finding = NotPresent();
  if (!lately.empty() && lately.front().value < kUnused && Median(ValuesOf(lately)) > kUsed) {
    finding = IdleChips(lately);
  } else if (mfu.has_value() && *mfu < settings.min_mfu()) {
    finding = Low("LowMfu", "The model FLOPs utilization", *mfu, settings.min_mfu(), busy,
                  settings.min_busy());
  } else if (!tensor.empty() && *MeanOf(tensor) < settings.min_tensor()) {
    finding = Low("LowTensorActivity", "The use of the chips' matrix units", *MeanOf(tensor),
                  settings.min_tensor(), tensor, settings.min_tensor());
  } else if (!busy.empty() && *MeanOf(busy) < settings.min_busy()) {
    finding = Low("LowDutyCycle", "The duty cycle of the chips", *MeanOf(busy), settings.min_busy(),
                  busy, settings.min_busy());
  }
  if (!finding.present) return finding;
  finding.step = steps.back().step;
  finding.AddFigure("step_time_median", step_seconds, "s");
  return finding;
}

}  // namespace tacho::server::conditions
