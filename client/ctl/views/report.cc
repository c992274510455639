// The parts that both formats of a report share, the report as Markdown, and as JSON.
#include "client/ctl/views/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/text/dot_canvas.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "proto/base/json_text.h"

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
  const Change change = ChangeOf(metric, 1);
  return !change.known || std::isnan(change.relative) ? -1 : std::fabs(change.relative);
}

constexpr size_t kSparklineWidth = 24;

// "12.5 USD, 0.00125 USD a step"; "": nothing is known.
std::string CostText(const std::optional<v1::CostResponse>& cost) {
  if (!cost || !cost->has_cost()) return "";
  std::string text = absl::StrCat(ReadableNumber(cost->cost()), " ", cost->currency());
  if (cost->has_cost_per_step()) {
    absl::StrAppend(&text, ", ", ReadableNumber(cost->cost_per_step()), " ", cost->currency(),
                    " a step");
  }
  if (cost->chip_seconds_not_priced() > 0) {
    absl::StrAppend(&text, ", without ", ReadableNumber(cost->chip_seconds_not_priced() / 3600),
                    " chip hours that have no price");
  }
  return text;
}

// Text as a table's cell: nothing in it is read as Markdown or HTML.
std::string Cell(absl::string_view text) {
  std::string cell;
  for (const char c : ValidUtf8(Printable(text))) {
    if (c == '<') {
      cell += "&lt;";
    } else if (c == '&') {
      cell += "&amp;";
    } else {
      if (absl::string_view("\\`*_{}[]()#|!~@").find(c) != absl::string_view::npos) cell += '\\';
      cell += c;
    }
  }
  return cell;
}

void Row(std::ostream& out, const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) out << "| " << cell << (cell.empty() ? "" : " ");
  out << "|\n";
}

void Thresholds(std::ostream& out, const Report& report) {
  if (report.verdicts.empty()) return;
  out << "\n| Metric | Threshold | Change | Verdict |\n|---|---|---:|---|\n";
  for (const Verdict& verdict : report.verdicts) {
    Row(out,
        {Cell(verdict.threshold.metric), Cell(verdict.threshold.Text()), Cell(ChangeText(verdict)),
         verdict.passed ? "passed" : absl::StrCat("**FAILED**: ", Cell(verdict.reason))});
  }
}

void Attributes(std::ostream& out, const Report& report) {
  const v1::CompareSubjects& subjects = report.comparison.subjects;
  out << "\n## Attributes\n\n";
  if (!subjects.attributes().empty()) {
    out << "| | " << Cell(report.first()) << " | " << Cell(report.second())
        << " |\n|---|---|---|\n";
    for (const v1::AttributeDifference& attribute : subjects.attributes()) {
      Row(out, {Cell(attribute.name()), Cell(attribute.values(0)), Cell(attribute.values(1))});
    }
    out << '\n';
  }
  out << Count(subjects.equal_attributes(), "attribute")
      << (subjects.equal_attributes() == 1 ? " is" : " are") << " the same.\n";
}

std::string Spark(const Curve& curve) {
  std::vector<double> values;
  // A place where something was not finite is marked, whatever else was there.
  for (const CurvePoint& point : curve.points) {
    values.push_back(point.non_finite > 0 ? kNotANumber : point.middle);
  }
  return values.empty() ? "" : absl::StrCat("`", Sparkline(values, kSparklineWidth, true), "`");
}

std::string NonFiniteText(const v1::CompareMetric& metric) {
  const uint64_t first = metric.columns(0).summary().non_finite();
  const uint64_t second = metric.columns(1).summary().non_finite();
  return first + second == 0 ? "" : absl::StrCat(first, " → ", second);
}

void Metrics(std::ostream& out, const Report& report) {
  out << "\n## Metrics\n\n";
  if (report.comparison.metrics.empty()) {
    out << "The runs have no metric in common.\n";
    return;
  }
  const std::string first = Cell(report.first());
  const std::string second = Cell(report.second());
  out << "| Metric | Change | " << first << " average | last | " << second
      << " average | last | NaN, infinite | " << first << " | " << second
      << " |\n|---|---:|---:|---:|---:|---:|---:|---|---|\n";
  for (const v1::CompareMetric* metric : ByWeight(report)) {
    const v1::ComparedSummary& a = metric->columns(0).summary();
    const v1::ComparedSummary& b = metric->columns(1).summary();
    const auto last = [](const v1::ComparedSummary& summary) {
      return summary.count() == 0 ? std::string() : ReadableNumber(summary.last());
    };
    const std::vector<Curve> curves = CurvesOf(report.comparison, *metric);
    Row(out, {Cell(MetricTitle(metric->metric())), Cell(ChangeText(*metric)),
              AverageText(*metric, 0), last(a), AverageText(*metric, 1), last(b),
              NonFiniteText(*metric), Spark(curves[0]), Spark(curves[1])});
  }
  out << "\nChange: the mean difference at the "
      << (report.comparison.by_step ? "steps" : "times since the beginning")
      << " that both have, relative to the average of " << first
      << " there. Values are averages over tasks and chips.\n";
  if (AnyCount(report)) out << kCountRemark << '\n';
}

void Energy(std::ostream& out, const Report& report) {
  if (report.energy.empty()) return;
  out << "\n## Energy\n\n| | " << Cell(report.first()) << " | " << Cell(report.second())
      << " |\n|---|---|---|\n";
  for (const EnergyLine& line : report.energy) {
    Row(out, {Cell(line.metric), EnergyText(line.runs[0]), EnergyText(line.runs[1])});
  }
  out << '\n' << kEnergyRemark << '\n';
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
  std::vector<ReportLine> lines = {{"Job", first.job(), second.job()},
                                   {"Attempts", AttemptsText(first), AttemptsText(second)},
                                   {"Steps", StepsText(first), StepsText(second)},
                                   {"Time", TimeText(report, first), TimeText(report, second)}};
  if (report.costs.size() < 2) return lines;
  ReportLine cost{"Cost of the whole job", CostText(report.costs[0]), CostText(report.costs[1])};
  if (!cost.first.empty() || !cost.second.empty()) lines.push_back(std::move(cost));
  return lines;
}

std::string MetricTitle(const v1::Metric& metric) {
  const bool plain = metric.unit().empty() || metric.unit() == "1";
  return plain ? metric.name() : absl::StrCat(metric.name(), " [", metric.unit(), "]");
}

std::string ChangeText(const v1::CompareMetric& metric) {
  const Change change = ChangeOf(metric, 1);
  if (!change.known) return "";
  if (change.difference == 0) return "0 %";
  const std::string percent = PercentText(change.relative);
  return percent.empty() ? SignedText(change.difference) : percent;
}

std::string AverageText(const v1::CompareMetric& metric, size_t run) {
  const v1::ComparedSummary& summary = metric.columns(static_cast<int>(run)).summary();
  if (summary.count() == 0) return "";
  if (!IsCount(metric.metric())) return ReadableNumber(summary.avg());
  return summary.has_rate() ? absl::StrCat(ReadableNumber(summary.rate()), "/s") : "";
}

bool AnyCount(const Report& report) {
  const auto& metrics = report.comparison.metrics;
  return std::any_of(metrics.begin(), metrics.end(),
                     [](const v1::CompareMetric& metric) { return IsCount(metric.metric()); });
}

std::string EnergyText(const std::optional<v1::Integral>& energy) {
  if (!energy) return "";
  std::string text = absl::StrCat(ReadableNumber(energy->value()), " J, ",
                                  ReadableNumber(KilowattHours(energy->value())), " kWh");
  if (energy->not_covered_ns() == 0) return text;
  return absl::StrCat(text, "; without ",
                      ReadableDuration(absl::Nanoseconds(energy->not_covered_ns())),
                      " that are not covered");
}

std::string ChangeText(const Verdict& verdict) {
  if (std::isnan(verdict.change)) return "unknown";
  return verdict.threshold.relative ? PercentText(verdict.change) : SignedText(verdict.change);
}

namespace {

void WriteEnergy(JsonWriter& json, const EnergyLine& line) {
  json.Field("metric", line.metric);
  json.Objects("columns", line.runs, [&](const std::optional<v1::Integral>& run) {
    const v1::Integral& energy = run.value_or(v1::Integral());
    const auto seconds = [&](int64_t ns) { return Maybe(run.has_value(), 1e-9 * double(ns)); };
    json.Field("joules", Maybe(run.has_value(), energy.value()));
    json.Field("kilowatt_hours", Maybe(run.has_value(), KilowattHours(energy.value())));
    json.Field("covered_seconds", seconds(energy.covered_ns()));
    json.Field("not_covered_seconds", seconds(energy.not_covered_ns()));
  });
}

}  // namespace

void WriteReportJson(std::ostream& out, const Report& report) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("verdict", report.verdicts.empty() ? "none" : report.passed() ? "passed" : "failed");
    json.Objects("thresholds", report.verdicts, [&](const Verdict& verdict) {
      const Threshold& threshold = verdict.threshold;
      json.Field("metric", threshold.metric);
      json.Field("statistic", StatisticName(threshold.statistic));
      json.Field("direction", threshold.direction == Threshold::Direction::kAbove   ? "above"
                              : threshold.direction == Threshold::Direction::kBelow ? "below"
                                                                                    : "either");
      json.Field("limit", threshold.limit);
      json.Field("relative", threshold.relative);
      json.Field("change", verdict.change);
      json.Field("passed", verdict.passed);
      json.Field("reason", verdict.reason);
    });
    json.Objects("energy", report.energy, [&](const EnergyLine& line) { WriteEnergy(json, line); });
    json.Objects("costs", report.costs, [&](const std::optional<v1::CostResponse>& run) {
      const v1::CostResponse& cost = run.value_or(v1::CostResponse());
      json.Field("currency", cost.currency());
      json.Field("cost", Maybe(cost.has_cost(), cost.cost()));
      json.Field("cost_per_step", Maybe(cost.has_cost_per_step(), cost.cost_per_step()));
      json.Field("joules", Maybe(cost.has_energy(), cost.energy().joules()));
    });
    WriteComparison(json, report.comparison, false);
  });
}

void WriteMarkdown(std::ostream& out, const Report& report) {
  out << "# " << Cell(report.second()) << " against " << Cell(report.first()) << "\n\n**"
      << report.VerdictText() << "**\n";
  Thresholds(out, report);
  out << "\n| | " << Cell(report.first()) << " | " << Cell(report.second())
      << " |\n|---|---|---|\n";
  for (const ReportLine& line : Facts(report)) {
    Row(out, {line.name, Cell(line.first), Cell(line.second)});
  }
  Attributes(out, report);
  Metrics(out, report);
  Energy(out, report);
  out << "\nMade " << ReadableTime(absl::ToUnixNanos(report.now), report.zone) << " "
      << report.zone_name << " by `tachoctl report`.\n";
}

}  // namespace tacho::ctl
