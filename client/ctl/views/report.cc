#include "client/ctl/views/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/time_format.h"

namespace tacho::ctl {
namespace {

std::string StepsText(const v1::ComparedSubject& subject) {
  if (!subject.has_first_step()) return "none";
  return absl::StrCat(subject.first_step(), " to ", subject.last_step());
}

std::string TimeText(const Report& report, const v1::ComparedSubject& subject) {
  if (!subject.has_first_unix_ns()) return "no samples";
  const int64_t span = subject.last_unix_ns() - subject.first_unix_ns();
  return absl::StrCat(ReadableTime(subject.first_unix_ns(), report.zone), " ", report.zone_name,
                      ", ", ReadableDuration(absl::Nanoseconds(span)));
}

bool HasThreshold(const Report& report, const v1::CompareMetric& metric) {
  return std::any_of(report.verdicts.begin(), report.verdicts.end(), [&](const Verdict& verdict) {
    return verdict.threshold.metric == metric.metric().name();
  });
}

// Larger is shown earlier.
double Weight(const v1::CompareMetric& metric) {
  const v1::ComparedSummary& summary = metric.columns(1).summary();
  if (summary.non_finite() != metric.columns(0).summary().non_finite()) return HUGE_VAL;
  const double change = std::fabs(summary.relative_difference());
  if (summary.shared() == 0 || std::isnan(change)) return -1;
  return change;
}

}  // namespace

bool Report::passed() const {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.passed; });
}

std::string Report::VerdictText() const {
  if (verdicts.empty()) return "No thresholds were set";
  const auto failed = std::count_if(verdicts.begin(), verdicts.end(),
                                    [](const Verdict& verdict) { return !verdict.passed; });
  const std::string all = Count(verdicts.size(), "threshold");
  return failed == 0 ? absl::StrCat("Passed: ", all)
                     : absl::StrCat("FAILED: ", failed, " of ", all);
}

std::vector<const v1::CompareMetric*> ByWeight(const Report& report) {
  std::vector<const v1::CompareMetric*> metrics;
  for (const v1::CompareMetric& metric : report.comparison.metrics) metrics.push_back(&metric);
  std::stable_sort(metrics.begin(), metrics.end(),
                   [&](const v1::CompareMetric* a, const v1::CompareMetric* b) {
                     return std::make_pair(HasThreshold(report, *a), Weight(*a)) >
                            std::make_pair(HasThreshold(report, *b), Weight(*b));
                   });
  return metrics;
}

std::vector<ReportLine> Facts(const Report& report) {
  const v1::ComparedSubject& first = report.comparison.subjects.subjects(0);
  const v1::ComparedSubject& second = report.comparison.subjects.subjects(1);
  return {{"Job", first.job(), second.job()},
          {"Attempts", AttemptsText(first), AttemptsText(second)},
          {"Steps", StepsText(first), StepsText(second)},
          {"Time", TimeText(report, first), TimeText(report, second)}};
}

std::string MetricTitle(const v1::Metric& metric) {
  const bool plain = metric.unit().empty() || metric.unit() == "1";
  return plain ? metric.name() : absl::StrCat(metric.name(), " [", metric.unit(), "]");
}

std::string ChangeText(const v1::ComparedSummary& second) {
  if (second.shared() == 0) return "";
  if (second.mean_difference() == 0) return "0 %";
  const std::string percent = PercentText(second.relative_difference());
  return percent.empty() ? SignedText(second.mean_difference()) : percent;
}

std::string ChangeText(const Verdict& verdict) {
  if (std::isnan(verdict.change)) return "unknown";
  return verdict.threshold.relative ? PercentText(verdict.change) : SignedText(verdict.change);
}

void WriteReportJson(std::ostream& out, const Report& report) {
  JsonWriter json(out);
  const auto text = [&](const char* name, const std::string& value) {
    json.Key(name);
    json.String(value);
  };
  json.BeginObject();
  text("verdict", report.verdicts.empty() ? "none" : report.passed() ? "passed" : "failed");
  json.Key("thresholds");
  json.BeginArray();
  for (const Verdict& verdict : report.verdicts) {
    const Threshold& threshold = verdict.threshold;
    json.BeginObject();
    text("metric", threshold.metric);
    text("statistic", StatisticName(threshold.statistic));
    text("direction", threshold.direction == Threshold::Direction::kAbove   ? "above"
                      : threshold.direction == Threshold::Direction::kBelow ? "below"
                                                                            : "either");
    json.Key("limit");
    json.Double(threshold.limit);
    json.Key("relative");
    json.Bool(threshold.relative);
    json.Key("change");
    json.Double(verdict.change);
    json.Key("passed");
    json.Bool(verdict.passed);
    text("reason", verdict.reason);
    json.EndObject();
  }
  json.EndArray();
  WriteComparison(json, report.comparison, false);
  json.EndObject();
}

}  // namespace tacho::ctl
