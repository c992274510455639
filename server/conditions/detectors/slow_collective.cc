// SlowCollective: a collective takes longer than it did, though nobody comes late to it.
//
// The task that enters a collective last waits for nobody, so its time is that of the collective
// itself (measures/collectives.h). A late task makes all others wait and leaves this time as it is:
// that is Straggling. A slow link, switch or network card makes it longer for all.
//
// Definition. Let `newest` be the times over the newest `steps` steps, `before` those over the
// first half of the window, and
//   expected = median(before) * max(1, bytes now / bytes before)
// with medians of the recorded bytes; more bytes may take longer, fewer need not be faster. A
// collective is slow if
//   0.25-quantile(newest) > min_ratio * expected   and
//   median(newest) - expected > max(k * noise, min_share of a step, 1 ms)
// where noise is UpperNoise(before), scaled like `expected`.
//
// The same holds for a link: all exchanges between two peers, where both ends recorded them. It is
// slow (reason SlowLink) if at most half of the links are. A link that was slow from the first
// step on is found by comparison: among 5 links or more it takes more than min_ratio times the
// median of all, and k deviations more, where a deviation is at least 0.1 of that median. Links of
// pipelines differ by their stage, and so do their deviations; times are scaled by bytes as above.
//
// Reasons: SlowLink, SlowExchanges (more than half of the links), SlowCollective. A slow link comes
// before a slow collective: it explains it. Culprits of SlowLink: both ends, those with more slow
// links first; score: how many times as long. A slow collective without slow links has none: all
// members see it alike.
//
// Needs collectives of two tasks or more, each recorded by all of its members under one name, and
// 60 steps. Limits: it does not tell which link of a collective is slow, unless peers are recorded;
// groups that share a name are judged by the fastest; a change of the collective without a change
// of its bytes, such as another algorithm, looks like a slow network.
//
// Sources. The shortest time of a collective over its members as that of the transfer: "Holistic
// Trace Analysis" and NCCL's flight recorder show arrival and duration apart. Thresholds are ours.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/quantile.h"
#include "server/conditions/detectors/detectors.h"
#include "server/conditions/measures/collectives.h"
#include "server/conditions/measures/robust.h"
#include "server/conditions/measures/step_times.h"

namespace tacho::server::conditions {
namespace {

constexpr size_t kMinBefore = 20;
constexpr double kLeastSeconds = 0.001;
constexpr int64_t kStepTimeSpanNs = 300'000'000'000;
constexpr size_t kMinLinks = 5;
// Links differ by this share of their median without a fault.
constexpr double kLinkSpread = 0.1;
constexpr double kFirstQuarter = 0.25;

struct SlowOne {
  const CollectiveTimes* times = nullptr;
  double usual = 0;        // Seconds a step, as expected.
  double now = 0;          // Seconds a step.
  bool by_others = false;  // Compared with the other links, not with its past.

  double ratio() const { return now / usual; }
};

std::vector<double> SecondsOf(const std::vector<CollectiveStep>& steps) {
  std::vector<double> seconds;
  for (const CollectiveStep& step : steps) seconds.push_back(step.seconds);
  return seconds;
}

// NaN if most steps do not have it.
double BytesOf(const std::vector<CollectiveStep>& steps) {
  std::vector<double> bytes;
  for (const CollectiveStep& step : steps) {
    if (step.bytes > 0) bytes.push_back(step.bytes);
  }
  return bytes.size() * 2 > steps.size() ? Median(std::move(bytes)) : kUnknownBytes;
}

// How many times as long `bytes` may take as `reference`.
double ScaleOf(double bytes, double reference) {
  const double scale = bytes / reference;
  return std::isfinite(scale) ? std::max(1.0, scale) : 1;
}

bool IsEnough(const CollectiveTimes& times, const Progress::SlowCollective& settings) {
  return times.before.size() >= kMinBefore && times.newest.size() * 2 > settings.steps();
}

// Whether it takes longer than it did.
bool IsSlower(const CollectiveTimes& times, const Progress::SlowCollective& settings,
              double step_seconds, SlowOne* slow) {
  const std::vector<double> before = SecondsOf(times.before);
  const std::vector<double> newest = SecondsOf(times.newest);
  const double scale = ScaleOf(BytesOf(times.newest), BytesOf(times.before));
  const double expected = Median(before) * scale;
  const double now = Median(newest);
  const double least = std::max({settings.k() * UpperNoise(before) * scale,
                                 settings.min_share() * step_seconds, kLeastSeconds});
  // A collective that was hidden behind other work took no time at all.
  *slow = {.times = &times, .usual = std::max(expected, kLeastSeconds), .now = now};
  return now - expected > least &&
         Quantile(newest, kFirstQuarter) > settings.min_ratio() * expected;
}

// Links that take longer than the others do.
std::vector<SlowOne> CompareLinks(const std::vector<const CollectiveTimes*>& links,
                                  const Progress::SlowCollective& settings, double step_seconds) {
  if (links.size() < kMinLinks) return {};
  std::vector<double> bytes;
  std::vector<double> seconds;
  for (const CollectiveTimes* link : links) bytes.push_back(BytesOf(link->newest));
  std::vector<double> known = bytes;
  std::erase_if(known, [](double one) { return std::isnan(one); });
  const double usual_bytes = known.empty() ? kUnknownBytes : Median(std::move(known));
  for (size_t i = 0; i < links.size(); ++i) {
    const double median = Median(SecondsOf(links[i]->newest));
    seconds.push_back(median / ScaleOf(bytes[i], usual_bytes));
  }
  const double middle = Median(seconds);
  const double deviation = std::max(ScaledMad(seconds, middle), kLinkSpread * middle);
  const double least =
      std::max({settings.k() * deviation, settings.min_share() * step_seconds, kLeastSeconds});
  std::vector<SlowOne> slow;
  for (size_t i = 0; i < links.size(); ++i) {
    if (seconds[i] <= settings.min_ratio() * middle || seconds[i] - middle <= least) continue;
    slow.push_back({.times = links[i],
                    .usual = std::max(middle, kLeastSeconds),
                    .now = seconds[i],
                    .by_others = true});
  }
  return slow;
}

// When it began to take longer.
const CollectiveStep& BeginOf(const CollectiveTimes& times) {
  std::vector<CollectiveStep> all = times.before;
  all.insert(all.end(), times.between.begin(), times.between.end());
  std::vector<double> seconds = SecondsOf(all);
  for (const CollectiveStep& step : times.newest) seconds.push_back(step.seconds);
  const size_t rise = FindRise(seconds, times.newest.size() / 2).index;
  if (rise < times.before.size()) return times.before[rise];
  if (rise < all.size()) return times.between[rise - times.before.size()];
  return times.newest[std::min(rise - all.size(), times.newest.size() - 1)];
}

std::string EndName(const TaskWindow& task) {
  return absl::StrCat(task.host, " (task ", task.task.value_or(0), ")");
}

std::string Describe(const SlowOne& slow) {
  const CollectiveTimes& times = *slow.times;
  const std::string what = times.is_link
                               ? absl::StrCat("the link between ", EndName(*times.members.front()),
                                              " and ", EndName(*times.members.back()))
                               : absl::StrCat("the collective ", times.name);
  return absl::StrFormat("%s takes %.3g s of each step, %.3g times the %.3g s of %s", what,
                         slow.now, slow.ratio(), slow.usual,
                         slow.by_others ? "the other links" : "before");
}

void BlameEnds(const std::vector<SlowOne>& links, Finding* finding) {
  struct End {
    const TaskWindow* task = nullptr;
    size_t links = 0;
    double score = 0;
    std::string metric;
  };
  std::vector<End> ends;
  for (const SlowOne& link : links) {
    for (const TaskWindow* task : link.times->members) {
      auto known =
          std::find_if(ends.begin(), ends.end(), [&](const End& end) { return end.task == task; });
      if (known == ends.end()) {
        known = ends.insert(ends.end(), {.task = task, .metric = link.times->metric});
      }
      ++known->links;
      known->score = std::max(known->score, link.ratio());
    }
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const End& a, const End& b) { return a.links > b.links; });
  for (const End& end : ends) finding->BlameTask(*end.task, end.score, finding->step, end.metric);
}

Finding Report(const char* reason, const std::vector<SlowOne>& slow,
               const Progress::SlowCollective& settings, double step_seconds) {
  const SlowOne& worst = slow.front();
  std::string message = Describe(worst);
  if (slow.size() > 1) absl::StrAppend(&message, "; ", slow.size() - 1, " more are slow");
  Finding finding = Present(Severity::kWarning, reason, std::move(message));
  if (!worst.by_others) {
    const CollectiveStep& begin = BeginOf(*worst.times);
    finding.since_ns = begin.time_ns;
    finding.step = begin.step;
  }
  finding.figures = {{"seconds", worst.now, "s"},
                     {"usual", worst.usual, "s"},
                     {"ratio", worst.ratio(), "1"},
                     {"threshold_ratio", settings.min_ratio(), "1"},
                     {"step_time_median", step_seconds, "s"},
                     {"threshold_share", settings.min_share(), "1"},
                     {"slow", static_cast<double>(slow.size()), "1"}};
  const double bytes = BytesOf(worst.times->newest);
  if (bytes > 0 && worst.now > 0) finding.AddFigure("bandwidth", bytes / worst.now, "By/s");
  return finding;
}

void WorstFirst(std::vector<SlowOne>* slow) {
  std::stable_sort(slow->begin(), slow->end(), [](const SlowOne& a, const SlowOne& b) {
    return a.now - a.usual > b.now - b.usual;
  });
}

}  // namespace

Finding DetectSlowCollective(const JobWindow& window, const Progress::SlowCollective& settings) {
  if (window.ended) return NotPresent();
  const std::vector<CollectiveTimes> all = MeasureCollectives(window, settings.steps());
  const double step_seconds = MedianSeconds(
      NewestOf(NetStepTimes(window), window.now_ns, kStepTimeSpanNs, settings.steps()));
  if (all.empty() || !(step_seconds > 0)) return NotJudged();
  std::vector<SlowOne> collectives;
  std::vector<SlowOne> links;
  std::vector<const CollectiveTimes*> judged_links;
  bool judged = false;
  for (const CollectiveTimes& times : all) {
    if (!IsEnough(times, settings)) continue;
    judged = true;
    SlowOne slow;
    if (times.is_link) judged_links.push_back(&times);
    if (!IsSlower(times, settings, step_seconds, &slow)) continue;
    (times.is_link ? links : collectives).push_back(slow);
  }
  if (!judged) return NotJudged();
  const bool most_links = links.size() * 2 > judged_links.size() && judged_links.size() > 2;
  if (links.empty()) links = CompareLinks(judged_links, settings, step_seconds);
  WorstFirst(&links);
  WorstFirst(&collectives);
  if (!links.empty() && !most_links) {
    Finding finding = Report("SlowLink", links, settings, step_seconds);
    BlameEnds(links, &finding);
    return finding;
  }
  if (!collectives.empty()) return Report("SlowCollective", collectives, settings, step_seconds);
  if (!links.empty()) return Report("SlowExchanges", links, settings, step_seconds);
  return NotPresent();
}

}  // namespace tacho::server::conditions
