// A report as one HTML file with its style and charts inside, so that it can be an artefact of
// CI.
#include "absl/strings/str_cat.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/svg_chart.h"
#include "client/ctl/views/report.h"

namespace tacho::ctl {
namespace {

constexpr absl::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
:root { --back: #fff; --text: #1b1f24; --faint: #d5dae0; --dim: #59636e; --a: #0969da; --b: #bc4c00;
  --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #0d1117; --text: #e6edf3; --faint: #30363d; --dim: #9198a1; --a: #58a6ff;
    --b: #f0883e; --good: #3fb950; --bad: #ff7b72; }
}
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid var(--faint); padding: .25rem .75rem; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.passed { color: var(--good); } .failed { color: var(--bad); font-weight: 600; }
.verdict { font-size: 1.2rem; }
.a { color: var(--a); } .b { color: var(--b); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(26rem, 1fr)); gap: 1rem; }
figure { margin: 0; border: 1px solid var(--faint); border-radius: 6px; padding: .5rem; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { fill: var(--dim); font: 11px system-ui, sans-serif; text-anchor: middle; }
svg text.y, svg text.name { text-anchor: end; }
svg text.alarm { fill: var(--bad); font-weight: 700; }
.grid { stroke: var(--faint); stroke-width: .5; } .axis { stroke: var(--dim); }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.band { opacity: .18; stroke: none; }
.line.c0 { stroke: var(--a); } .band.c0, .dot.c0 { fill: var(--a); }
.line.c1 { stroke: var(--b); } .band.c1, .dot.c1 { fill: var(--b); }
footer { color: var(--dim); margin-top: 2rem; }
</style>
)";

class HtmlWriter {
 public:
  HtmlWriter(std::ostream& out, const Report& report)
      : out_(out),
        report_(report),
        first_(absl::StrCat("<span class=\"a\">", EscapeXml(report.first()), "</span>")),
        second_(absl::StrCat("<span class=\"b\">", EscapeXml(report.second()), "</span>")) {}

  void Write() {
    out_ << std::string(kHead) << "<title>" << EscapeXml(report_.second()) << " against "
         << EscapeXml(report_.first()) << "</title>\n</head>\n<body>\n<h1>" << second_
         << " against " << first_ << "</h1>\n<p class=\"verdict "
         << (report_.verdicts.empty() ? ""
             : report_.passed()       ? "passed"
                                      : "failed")
         << "\">" << report_.VerdictText() << "</p>\n";
    Thresholds();
    Runs();
    Curves();
    Metrics();
    Energy();
    out_ << "<footer>Made " << ReadableTime(absl::ToUnixNanos(report_.now), report_.zone) << " "
         << EscapeXml(report_.zone_name)
         << " by tachoctl report. Change is the mean difference at the "
         << (report_.comparison.by_step ? "steps" : "times since the beginning")
         << " that both have, relative to the average of " << first_
         << " there. Values are averages over tasks and chips, bands reach from the lowest to the "
            "highest; × marks values that are NaN or infinite.</footer>\n</body>\n</html>\n";
  }

 private:
  void Thresholds() {
    if (report_.verdicts.empty()) return;
    out_ << "<table>\n<tr><th>Metric</th><th>Threshold</th><th class=\"n\">Change</th>"
            "<th>Verdict</th></tr>\n";
    for (const Verdict& verdict : report_.verdicts) {
      out_ << "<tr><td>" << EscapeXml(verdict.threshold.metric) << "</td><td>"
           << EscapeXml(verdict.threshold.Text()) << "</td><td class=\"n\">"
           << EscapeXml(ChangeText(verdict)) << "</td><td class=\""
           << (verdict.passed ? "passed\">passed"
                              : absl::StrCat("failed\">FAILED: ", EscapeXml(verdict.reason)))
           << "</td></tr>\n";
    }
    out_ << "</table>\n";
  }

  void Runs() {
    out_ << "<h2>Runs</h2>\n<table>\n<tr><th></th><th>" << first_ << "</th><th>" << second_
         << "</th></tr>\n";
    const auto row = [&](const std::string& name, const std::string& a, const std::string& b) {
      out_ << "<tr><th>" << EscapeXml(name) << "</th><td>" << EscapeXml(a) << "</td><td>"
           << EscapeXml(b) << "</td></tr>\n";
    };
    for (const ReportLine& line : Facts(report_)) row(line.name, line.first, line.second);
    for (const v1::AttributeDifference& attribute : report_.comparison.subjects.attributes()) {
      row(attribute.name(), attribute.values(0), attribute.values(1));
    }
    const uint32_t equal = report_.comparison.subjects.equal_attributes();
    out_ << "</table>\n<p>" << Count(equal, "attribute") << (equal == 1 ? " is" : " are")
         << " the same.</p>\n";
  }

  void Curves() {
    SvgOptions options;
    options.axis = report_.comparison.by_step ? PlotAxis::kStep : PlotAxis::kElapsed;
    options.zone = report_.zone;
    options.zone_name = report_.zone_name;
    size_t drawn = 0;
    std::string figures;
    for (const v1::CompareMetric* metric : ByWeight(report_)) {
      if (drawn == report_.curves) break;
      const std::vector<Curve> curves = CurvesOf(report_.comparison, *metric);
      if (!AnyDrawn(curves, false)) continue;
      options.title =
          absl::StrCat(metric->metric().name(), " of ", report_.first(), " and ", report_.second());
      absl::StrAppend(&figures, "<figure>\n<figcaption>", EscapeXml(MetricTitle(metric->metric())),
                      "</figcaption>\n", SvgChart(curves, options), "</figure>\n");
      ++drawn;
    }
    if (drawn == 0) return;
    out_ << "<h2>Curves</h2>\n<p>" << first_ << " and " << second_
         << "</p>\n<div class=\"charts\">\n"
         << figures << "</div>\n";
  }

  void Metrics() {
    out_ << "<h2>Metrics</h2>\n";
    if (report_.comparison.metrics.empty()) {
      out_ << "<p>The runs have no metric in common.</p>\n";
      return;
    }
    out_ << "<table>\n<tr><th>Metric</th><th class=\"n\">Change</th>";
    for (const std::string& name : {first_, second_}) {
      out_ << "<th class=\"n\">" << name << " average</th><th class=\"n\">last</th>"
           << "<th class=\"n\">min</th><th class=\"n\">max</th><th class=\"n\">NaN, infinite</th>";
    }
    out_ << "</tr>\n";
    for (const v1::CompareMetric* metric : ByWeight(report_)) {
      out_ << "<tr><td>" << EscapeXml(MetricTitle(metric->metric())) << "</td><td class=\"n\">"
           << EscapeXml(ChangeText(*metric)) << "</td>";
      Figures(*metric, 0);
      Figures(*metric, 1);
      out_ << "</tr>\n";
    }
    out_ << "</table>\n";
    if (AnyCount(report_)) out_ << "<p>" << kCountRemark << "</p>\n";
  }

  void Energy() {
    if (report_.energy.empty()) return;
    out_ << "<h2>Energy</h2>\n<table>\n<tr><th></th><th>" << first_ << "</th><th>" << second_
         << "</th></tr>\n";
    for (const EnergyLine& line : report_.energy) {
      out_ << "<tr><th>" << EscapeXml(line.metric) << "</th><td>" << EnergyText(line.runs[0])
           << "</td><td>" << EnergyText(line.runs[1]) << "</td></tr>\n";
    }
    out_ << "</table>\n<p>" << kEnergyRemark << "</p>\n";
  }

  void Figures(const v1::CompareMetric& metric, size_t run) {
    const v1::ComparedSummary& summary = metric.columns(static_cast<int>(run)).summary();
    out_ << "<td class=\"n\">" << AverageText(metric, run) << "</td>";
    for (const double value : {summary.last(), summary.min(), summary.max()}) {
      out_ << "<td class=\"n\">" << (summary.count() == 0 ? "" : ReadableNumber(value)) << "</td>";
    }
    out_ << "<td class=\"n" << (summary.non_finite() > 0 ? " failed" : "") << "\">"
         << (summary.non_finite() > 0 ? Thousands(summary.non_finite()) : "") << "</td>";
  }

  std::ostream& out_;
  const Report& report_;
  const std::string first_;
  const std::string second_;
};

}  // namespace

void WriteHtml(std::ostream& out, const Report& report) { HtmlWriter(out, report).Write(); }

}  // namespace tacho::ctl
