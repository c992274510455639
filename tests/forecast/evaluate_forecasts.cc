// How often the truth lies in the band of a forecast, over the recorded curves of shared data.
//
// Usage: evaluate_forecasts DIRECTORY [--half tune|report|all] [--list]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "server/forecast/end_forecast.h"
#include "server/forecast/loss_forecast.h"
#include "tests/conditions/recorded_job.h"

namespace tacho::forecast {
namespace {

using conditions::RecordedJob;
using server::conditions::Point;
using server::conditions::Signal;
using server::conditions::Track;
using server::forecast::CurvePoints;
using server::forecast::Progress;

constexpr double kShares[] = {0.2, 0.35, 0.5, 0.7, 0.9};
constexpr size_t kLeastValues = 100;

// The same halves as those of tests/conditions: FNV-1a of the name.
bool InTuningHalf(const std::string& name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return (hash >> 17) % 2 == 0;
}

// Steps that were reached once only, ascending, with finite values.
std::vector<Point> Ascending(const Track& track) {
  std::vector<Point> points;
  for (const Point& p : track.points) {
    if (p.step == server::conditions::kNoPointStep || !std::isfinite(p.value)) continue;
    while (!points.empty() && points.back().step >= p.step) points.pop_back();
    points.push_back(p);
  }
  return points;
}

double MeanOfLast(const std::vector<Point>& points) {
  const double from = static_cast<double>(points.back().step + 1) * 0.95;
  double sum = 0, n = 0;
  for (const Point& p : points) {
    if (static_cast<double>(p.step + 1) < from) continue;
    sum += p.value;
    ++n;
  }
  return sum / n;
}

struct Tally {
  size_t asked = 0, answered = 0, inside = 0;
  std::vector<double> error, stays, half;  // Relative to the truth.
};

double Median(std::vector<double> values) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Flags {
  std::string directory;
  std::string half = "all";
  bool list = false;
};

bool IsAsked(const Flags& flags, const RecordedJob& job) {
  return flags.half == "all" || InTuningHalf(job.name) == (flags.half == "tune");
}

void TryLoss(const RecordedJob& job, const Track& track, double share, bool list, Tally* tally) {
  const std::vector<Point> points = Ascending(track);
  const double truth = MeanOfLast(points);
  const auto at = static_cast<double>(points.back().step + 1);
  ++tally->asked;
  CurvePoints curve;
  for (const Point& p : points) {
    if (static_cast<double>(p.step + 1) <= share * at) curve.Add(p.step, p.value);
  }
  const auto forecast = server::forecast::ForecastLoss(curve.Take(), at);
  if (!forecast.ok()) return;
  ++tally->answered;
  const bool inside = truth >= forecast->low && truth <= forecast->high;
  tally->inside += inside ? 1 : 0;
  const double scale = std::abs(truth) + 1e-12;
  tally->error.push_back(std::abs(forecast->value - truth) / scale);
  tally->stays.push_back(std::abs(forecast->now - truth) / scale);
  tally->half.push_back((forecast->high - forecast->low) / 2 / scale);
  if (!list) return;
  printf("%s %s %s at %.2f: now %g, forecast %g [%g, %g], truth %g\n", inside ? " " : "!",
         job.name.c_str(), track.metric.c_str(), share, forecast->now, forecast->value,
         forecast->low, forecast->high, truth);
}

// Files without times were given a second a step.
bool HasTimes(const std::vector<Point>& points) {
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].time_ns - points[i - 1].time_ns !=
        (points[i].step - points[i - 1].step) * 1'000'000'000) {
      return true;
    }
  }
  return false;
}

// Errors are shares of the time that was left.
void TryEnd(const RecordedJob& job, const Track& track, double share, bool list, Tally* tally) {
  const std::vector<Point> points = Ascending(track);
  if (!HasTimes(points)) return;
  ++tally->asked;
  Progress progress;
  int64_t now_ns = 0, reached = 0;
  for (const Point& p : points) {
    if (static_cast<double>(p.step) > share * static_cast<double>(points.back().step)) break;
    progress.Add(p.time_ns, p.step);
    now_ns = p.time_ns;
    reached = p.step;
  }
  const auto forecast = server::forecast::ForecastEnd(progress.Take(), points.back().step, now_ns);
  if (!forecast.ok()) return;
  const int64_t truth = points.back().time_ns;
  const auto left = static_cast<double>(truth - now_ns);
  if (left <= 0) return;
  ++tally->answered;
  const bool inside = truth >= forecast->earliest_ns && truth <= forecast->latest_ns;
  tally->inside += inside ? 1 : 0;
  tally->error.push_back(std::abs(static_cast<double>(forecast->likely_ns - truth)) / left);
  // What a progress bar says: steps left x mean time of a step so far.
  const double before = static_cast<double>(now_ns - points.front().time_ns);
  const double steps = static_cast<double>(points.back().step - points.front().step);
  const double bar = before / (static_cast<double>(reached - points.front().step) / steps) - before;
  tally->stays.push_back(std::abs(bar - left) / left);
  tally->half.push_back(static_cast<double>(forecast->latest_ns - forecast->earliest_ns) / 2 /
                        left);
  if (!list) return;
  printf("%s %s at %.2f: %.0f s left, forecast %.0f [%.0f, %.0f]\n", inside ? " " : "!",
         job.name.c_str(), share, left / 1e9,
         static_cast<double>(forecast->likely_ns - now_ns) / 1e9,
         static_cast<double>(forecast->earliest_ns - now_ns) / 1e9,
         static_cast<double>(forecast->latest_ns - now_ns) / 1e9);
}

void Print(const char* title, const char* simple, const std::map<double, Tally>& tallies) {
  printf(
      "%s\n\n| known | asked | answered | in the band | error, median | %s | half the band, median "
      "|\n",
      title, simple);
  printf("|---|--:|--:|--:|--:|--:|--:|\n");
  for (const auto& [share, tally] : tallies) {
    const double inside = static_cast<double>(tally.inside) / static_cast<double>(tally.answered);
    printf("| %.0f %% | %zu | %zu | %.2f | %.3f | %.3f | %.3f |\n", share * 100, tally.asked,
           tally.answered, inside, Median(tally.error), Median(tally.stays), Median(tally.half));
  }
  printf("\n");
}

int Main(const Flags& flags) {
  const auto jobs = conditions::LoadRecordedJobs(flags.directory);
  if (!jobs.ok()) {
    fprintf(stderr, "%s\n", std::string(jobs.status().message()).c_str());
    return 1;
  }
  std::map<double, Tally> losses, ends;
  for (const RecordedJob& job : *jobs) {
    if (!IsAsked(flags, job)) continue;
    const Track* clock = nullptr;
    for (const Signal signal : {Signal::kLoss, Signal::kEvalLoss}) {
      const auto tracks = job.tasks.front().tracks.find(signal);
      if (tracks == job.tasks.front().tracks.end() || tracks->second.empty()) continue;
      const Track& track = tracks->second.front();
      if (Ascending(track).size() < kLeastValues) continue;
      if (clock == nullptr) clock = &track;
      for (const double share : kShares) TryLoss(job, track, share, flags.list, &losses[share]);
    }
    if (clock == nullptr) continue;
    for (const double share : kShares) TryEnd(job, *clock, share, flags.list, &ends[share]);
  }
  Print("The loss at the last step", "if it stayed", losses);
  Print("The time that is left", "by the mean so far", ends);
  return 0;
}

}  // namespace
}  // namespace tacho::forecast

int main(int argc, char** argv) {
  tacho::forecast::Flags flags;
  if (argc > 1) flags.directory = argv[1];
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "--half") == 0 && i + 1 < argc) flags.half = argv[++i];
    if (strcmp(argv[i], "--list") == 0) flags.list = true;
  }
  return tacho::forecast::Main(flags);
}
