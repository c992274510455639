#include "absl/strings/str_cat.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/text/sparkline.h"
#include "client/ctl/text/text.h"
#include "client/ctl/text/time_format.h"
#include "client/ctl/views/report.h"
#include "proto/base/json_text.h"

namespace tacho::ctl {
namespace {

constexpr size_t kSparklineWidth = 24;

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
    const auto number = [](const v1::ComparedSummary& summary, double value) {
      return summary.count() == 0 ? std::string() : ReadableNumber(value);
    };
    const std::vector<Curve> curves = CurvesOf(report.comparison, *metric);
    Row(out, {Cell(MetricTitle(metric->metric())), Cell(ChangeText(b)), number(a, a.avg()),
              number(a, a.last()), number(b, b.avg()), number(b, b.last()), NonFiniteText(*metric),
              Spark(curves[0]), Spark(curves[1])});
  }
  out << "\nChange: the mean difference at the "
      << (report.comparison.by_step ? "steps" : "times since the beginning")
      << " that both have, relative to the average of " << first
      << " there. Values are averages over tasks and chips.\n";
}

}  // namespace

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
  out << "\nMade " << ReadableTime(absl::ToUnixNanos(report.now), report.zone) << " "
      << report.zone_name << " by `tachoctl report`.\n";
}

}  // namespace tacho::ctl
