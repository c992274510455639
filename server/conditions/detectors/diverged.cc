// Diverged: training has left the range of values that it can recover from.
//
// Definition. The condition is true if one of these signals, on any task, meets its rule:
//   loss         the newest value is NaN or infinite, or `loss_values` of the newest
//                `loss_window` are;
//   param_norm   the newest value is: the weights themselves are lost;
//   grad_norm, update_norm
//                the newest `gradient_values` are, after a finite one, or the newest
//                `gradient_start_values` if none was ever finite. With mixed precision a loss
//                scaler skips single steps with infinite gradients, and many at the start while it
//                looks for its scale (Micikevicius et al., "Mixed Precision Training", 2018);
//   eval_loss    the newest `eval_values` are, after a finite one.
// It is also true if the loss has run away: the median of the newest `run_away_points` values is
// above the least such median before by more than
//   `run_away_share` of the fall from the first median to the least one,
//   `run_away_relative` of the absolute value of the least one, and
//   `run_away_noise` standard deviations of the noise,
// and it is not falling again. Many spikes that recover begin with a rise of a quarter of the fall;
// a rise of all of it does not recover. A loss that changes its sign, such as that of adversarial
// and energy-based models, is not judged for running away.
//
// A task whose loss was never finite while the loss of others was has no loss (all stages of a
// pipeline but the last), and is left out. No other metric counts.
//
// Source: ours. Users ask most for the order of first occurrences: which task and which metric were
// first (pytorch #122694, jax #9767). While a task may still send rows of that step, the detector
// reports nothing for up to 10 s: that task may have been the first.
//
// Needs loss, or one of the other signals. Culprits are ordered by the step, then the time, of the
// first value of their current stretch; score: how many tasks were hit before. Limits: if the
// window begins after the first NaN, the first one in the window is named.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/curve.h"
#include "server/conditions/measures/robust.h"

namespace tacho::server::conditions {
namespace {

// Rows of the same step from different hosts arrive up to this far apart.
constexpr int64_t kPatienceNs = 10'000'000'000;

// How many non-finite values of a signal mean that training is lost.
struct Rule {
  Signal signal;
  const char* reason;
  uint32_t values;  // Among the newest `window`; the very newest suffices if `newest_suffices`.
  uint32_t window;
  bool newest_suffices;
  uint32_t start_values;  // In a row, if none was finite before.
};

std::vector<Rule> RulesOf(const Curves::Diverged& s) {
  return {
      {Signal::kLoss, "NonFiniteLoss", s.loss_values(), s.loss_window(), true, 1},
      {Signal::kParamNorm, "NonFiniteWeights", 1, 1, true, 1},
      {Signal::kGradNorm, "NonFiniteGradient", s.gradient_values(), s.gradient_values(), false,
       s.gradient_start_values()},
      {Signal::kUpdateNorm, "NonFiniteGradient", s.gradient_values(), s.gradient_values(), false,
       s.gradient_start_values()},
      {Signal::kEvalLoss, "NonFiniteEvalLoss", s.eval_values(), s.eval_values(), false, UINT32_MAX},
  };
}

// A track with a non-finite value.
struct Hit {
  const TaskWindow* task = nullptr;
  const char* reason = nullptr;
  std::string metric;
  Point first;          // The first point of the current stretch.
  bool enough = false;  // The signal's rule is met.
};

// The start of the stretch with the newest non-finite value. `window` finite values separate two
// stretches.
std::optional<size_t> StretchStart(const std::vector<Point>& points, size_t window) {
  std::optional<size_t> start;
  size_t finite = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].value)) {
      if (!start) start = i;
      finite = 0;
    } else if (start && ++finite >= window) {
      start.reset();
    }
  }
  return start;
}

bool Enough(const std::vector<Point>& points, const Rule& rule) {
  if (points.empty()) return false;
  const auto bad = [](const Point& point) { return !std::isfinite(point.value); };
  const bool ever_finite = !std::all_of(points.begin(), points.end(), bad);
  if (!ever_finite) return points.size() >= rule.start_values;
  if (rule.newest_suffices && bad(points.back())) return true;
  const size_t window = std::min<size_t>(rule.window, points.size());
  return std::count_if(points.end() - static_cast<std::ptrdiff_t>(window), points.end(), bad) >=
         static_cast<std::ptrdiff_t>(rule.values);
}

bool HasFinite(const Track& track) {
  return std::any_of(track.points.begin(), track.points.end(),
                     [](const Point& point) { return std::isfinite(point.value); });
}

// Whether this metric has been finite on any task.
bool FiniteSomewhere(const JobWindow& window, Signal signal, const std::string& metric) {
  for (const TaskWindow& task : window.tasks) {
    const auto found = task.tracks.find(signal);
    if (found == task.tracks.end()) continue;
    for (const Track& track : found->second) {
      if (track.metric == metric && HasFinite(track)) return true;
    }
  }
  return false;
}

void AddHits(const JobWindow& window, const TaskWindow& task, const Rule& rule,
             std::vector<Hit>* hits) {
  const auto found = task.tracks.find(rule.signal);
  if (found == task.tracks.end()) return;
  for (const Track& track : found->second) {
    // A scan in place: a track without non-finite values costs no copy.
    if (std::all_of(track.points.begin(), track.points.end(),
                    [](const Point& point) { return std::isfinite(point.value); })) {
      continue;
    }
    if (!HasFinite(track) && FiniteSomewhere(window, rule.signal, track.metric)) continue;
    const std::vector<Point> points = EffectivePoints(track.points);
    const auto start = StretchStart(points, std::max<size_t>(rule.window, 2));
    if (!start) continue;
    hits->push_back({&task, rule.reason, track.metric, points[*start], Enough(points, rule)});
  }
}

size_t TasksOf(const std::vector<Hit>& hits) {
  std::vector<const TaskWindow*> tasks;
  for (const Hit& hit : hits) tasks.push_back(hit.task);
  std::sort(tasks.begin(), tasks.end());
  return static_cast<size_t>(std::unique(tasks.begin(), tasks.end()) - tasks.begin());
}

std::string Where(const Hit& hit) {
  std::string text = absl::StrCat(hit.metric);
  if (hit.task->task) absl::StrAppend(&text, " of task ", *hit.task->task);
  if (!hit.task->host.empty()) absl::StrAppend(&text, " on ", hit.task->host);
  if (hit.first.step != kNoPointStep) absl::StrAppend(&text, " at step ", hit.first.step);
  return text;
}

// By step first: clocks of hosts differ, steps of a synchronous job do not.
void SortHits(std::vector<Hit>* hits) {
  std::stable_sort(hits->begin(), hits->end(), [](const Hit& a, const Hit& b) {
    return std::tie(a.first.step, a.first.time_ns) < std::tie(b.first.step, b.first.time_ns);
  });
}

// Whether a task that has yet to report this step may turn out to be the first.
bool MayNotBeFirst(const JobWindow& window, const Point& first) {
  if (first.step == kNoPointStep || window.now_ns - first.time_ns > kPatienceNs) return false;
  return std::any_of(window.tasks.begin(), window.tasks.end(), [&](const TaskWindow& task) {
    return !task.ended && task.last_step && *task.last_step < first.step;
  });
}

// Whether more than one task, and at least half of those hit, were hit at the first step: then no
// task was the first. `hits` are sorted.
bool HitTogether(const std::vector<Hit>& hits, size_t tasks) {
  if (tasks < 2 || hits.front().first.step == kNoPointStep) return false;
  std::vector<Hit> at_first;
  for (const Hit& hit : hits) {
    if (hit.first.step == hits.front().first.step) at_first.push_back(hit);
  }
  const size_t together = TasksOf(at_first);
  return together > 1 && together * 2 >= tasks;
}

std::string TogetherMessage(const std::vector<Hit>& hits, size_t tasks, size_t all) {
  const Hit& first = hits.front();
  return absl::StrCat(first.metric, " became ", ValueText(first.first.value), " on ",
                      tasks == all ? absl::StrCat("all ", tasks, " tasks")
                                   : absl::StrCat(tasks, " of ", all, " tasks"),
                      " at step ", first.first.step, "; none of them was the first");
}

std::string FirstMessage(const Hit& first, size_t tasks, size_t all) {
  return absl::StrCat(Where(first), " was the first value to become ", ValueText(first.first.value),
                      "; ", tasks, " of ", all, " tasks are affected");
}

// `hits` are sorted, and one of them is enough.
Finding OfHits(const JobWindow& window, const std::vector<Hit>& hits) {
  TACHO_CHECK(!hits.empty());
  const Hit& first = hits.front();
  const auto verdict =
      std::find_if(hits.begin(), hits.end(), [](const Hit& h) { return h.enough; });
  TACHO_CHECK(verdict != hits.end());
  const size_t tasks = TasksOf(hits);
  const bool together = HitTogether(hits, tasks);
  Finding finding = Present(Severity::kCritical, verdict->reason,
                            together ? TogetherMessage(hits, tasks, window.tasks.size())
                                     : FirstMessage(first, tasks, window.tasks.size()));
  finding.since_ns = first.first.time_ns;
  if (first.first.step != kNoPointStep) finding.step = first.first.step;
  finding.figures = {
      {"tasks_hit", static_cast<double>(tasks), "1"},
      {"tasks", static_cast<double>(window.tasks.size()), "1"},
      {"first_value", first.first.value, "1"},
      {"spread_seconds", Seconds(hits.back().first.time_ns - first.first.time_ns), "s"}};
  if (together) {
    finding.BlameMetric(first.metric, first.first.step);
    return finding;
  }
  for (size_t i = 0; i < hits.size(); ++i) {
    std::optional<int64_t> step;
    if (hits[i].first.step != kNoPointStep) step = hits[i].first.step;
    finding.BlameTask(*hits[i].task, static_cast<double>(i), step, hits[i].metric);
  }
  return finding;
}

// Medians of stretches of `width` values that overlap by half.
struct Levels {
  std::vector<double> values;
  std::vector<size_t> starts;  // Indices of points.
};

Levels LevelsOf(const Curve& curve, size_t width) {
  Levels levels;
  const size_t n = curve.points.size();
  // Aligned to the newest value, because its level is the one to judge.
  for (size_t first = n % std::max<size_t>(1, width / 2); first + width <= n; first += width / 2) {
    levels.values.push_back(Median(curve.Values(first, first + width)));
    levels.starts.push_back(first);
  }
  return levels;
}

Finding DetectRunAway(const JobWindow& window, const Curves::Diverged& settings) {
  const Curve curve = JobCurve(window, Signal::kLoss);
  const size_t width = settings.run_away_points();
  if (curve.points.size() < 3 * width) return NotPresent();
  const std::vector<double> all = curve.Values(0, curve.points.size());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  if (*low < 0 && *high > 0) return NotPresent();
  const Levels levels = LevelsOf(curve, width);
  const auto least = std::min_element(levels.values.begin(), levels.values.end());
  const double now = levels.values.back();
  const double rise = now - *least;
  const double fall = levels.values.front() - *least;
  const size_t from = levels.starts[static_cast<size_t>(least - levels.values.begin())];
  const double noise = UpperNoise(curve.Values(from, from + width));
  const double needed =
      std::max({settings.run_away_share() * fall, settings.run_away_relative() * std::abs(*least),
                settings.run_away_noise() * noise});
  // Far below an earlier peak, the loss is on its way down again.
  const double peak = *std::max_element(least, levels.values.end());
  if (!(rise > needed) || now < *least + 0.8 * (peak - *least)) return NotPresent();
  const CurvePoint& best = curve.points[from + width / 2];
  Finding finding = Present(
      Severity::kCritical, "LossRanAway",
      absl::StrCat(curve.metric, " rose from ", ValueText(*least), " at step ", best.step, " to ",
                   ValueText(now), " at step ", curve.points.back().step, " and does not recover"));
  finding.since_ns = best.time_ns;
  finding.step = best.step;
  finding.figures = {{"level", now, "1"},
                     {"least_level", *least, "1"},
                     {"threshold", needed, "1"},
                     {"noise", noise, "1"}};
  finding.BlameMetric(curve.metric, best.step);
  return finding;
}

}  // namespace

Finding DetectDiverged(const JobWindow& window, const Curves::Diverged& settings) {
  bool judged = false;
  std::vector<Hit> hits;
  for (const Rule& rule : RulesOf(settings)) {
    for (const TaskWindow& task : window.tasks) {
      judged = judged || FindTrack(task.tracks, rule.signal) != nullptr;
      AddHits(window, task, rule, &hits);
    }
  }
  if (!judged) return NotJudged();
  if (std::any_of(hits.begin(), hits.end(), [](const Hit& hit) { return hit.enough; })) {
    SortHits(&hits);
    return MayNotBeFirst(window, hits.front().first) ? NotPresent() : OfHits(window, hits);
  }
  return DetectRunAway(window, settings);
}

}  // namespace tacho::server::conditions
