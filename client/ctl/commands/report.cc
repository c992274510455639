// 'report': compares two runs, judges the thresholds and writes the report; its exit code is the
// verdict.
#include "client/ctl/views/report.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr uint64_t kDefaultCurves = 12;
constexpr uint64_t kMostCurvesDrawn = 1000;

struct ReportRequest {
  std::vector<SubjectName> subjects;
  v1::CompareRequest compare;
  std::vector<Threshold> thresholds;
  uint64_t curves = kDefaultCurves;
};

absl::StatusOr<ReportRequest> ParseReportRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  ReportRequest report;
  for (const std::string& operand : args.positionals()) {
    report.subjects.push_back(ParseSubject(operand));
  }
  for (const std::string& text : args.GetAll("threshold")) {
    absl::StatusOr<Threshold> threshold = ParseThreshold(text);
    if (!threshold.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--threshold ", threshold.status().message()));
    }
    report.thresholds.push_back(*std::move(threshold));
  }
  const auto curves = ParseNumber(args, "curves", 0, kMostCurvesDrawn);
  if (!curves.ok()) return curves.status();
  report.curves = curves->value_or(kDefaultCurves);
  if (args.Has("format") && invocation.common.format != Format::kTable) {
    return absl::InvalidArgumentError(
        "--format and --output exclude each other: use --format for Markdown or HTML, -o json for "
        "data");
  }
  auto compare = ParseCompareRequest(args, report.subjects);
  if (!compare.ok()) return compare.status();
  report.compare = *std::move(compare);
  // With --metric, the metrics of thresholds are asked for too.
  if (!report.compare.metrics().empty()) {
    for (const Threshold& threshold : report.thresholds) {
      const auto& metrics = report.compare.metrics();
      if (std::find(metrics.begin(), metrics.end(), threshold.metric) == metrics.end()) {
        report.compare.add_metrics(threshold.metric);
      }
    }
  }
  return report;
}

void WriteCsv(std::ostream& out, const Report& report) {
  out << CsvLine({"metric", "threshold", "change", "verdict", "reason"});
  for (const Verdict& verdict : report.verdicts) {
    out << CsvLine({verdict.threshold.metric, verdict.threshold.Text(), ExactNumber(verdict.change),
                    verdict.passed ? "passed" : "failed", verdict.reason});
  }
}

std::string Document(const Invocation& invocation, const Report& report) {
  std::ostringstream text;
  if (invocation.common.format == Format::kJson) {
    WriteReportJson(text, report);
  } else if (invocation.common.format == Format::kCsv) {
    WriteCsv(text, report);
  } else if (invocation.args.Get("format") == "html") {
    WriteHtml(text, report);
  } else {
    WriteMarkdown(text, report);
  }
  return text.str();
}

// Says on err what went wrong.
bool WriteFile(const Environment& env, const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.good()) return true;
  *env.err << "tachoctl report: --file " << Printable(path)
           << ": cannot be written: " << std::generic_category().message(errno == 0 ? EIO : errno)
           << '\n';
  return false;
}

void PrintVerdicts(const Environment& env, const Report& report) {
  *env.err << "tachoctl report: " << report.VerdictText() << '\n';
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.passed) continue;
    *env.err << "  "
             << Printable(absl::StrCat(verdict.threshold.metric, ": ", verdict.threshold.Text(),
                                       ", changed by ", ChangeText(verdict), ": ", verdict.reason))
             << '\n';
  }
}

// A metric of power that was used; a limit was not.
bool IsPower(const v1::Metric& metric) {
  return metric.unit() == "W" && metric.type() != v1::METRIC_TYPE_COUNTER &&
         metric.name().find("limit") == std::string::npos;
}

// The energy of the metrics of power that are compared. A report does without where the collector
// does not answer: standard error says why.
std::vector<EnergyLine> ReadEnergy(const Invocation& invocation, QueryClient& client,
                                   const ReportRequest& report, const Comparison& comparison) {
  std::vector<EnergyLine> lines;
  v1::IntegrateRequest request;
  for (const v1::CompareMetric& metric : comparison.metrics) {
    if (!IsPower(metric.metric())) continue;
    request.mutable_selector()->add_metrics(metric.metric().name());
    lines.push_back({metric.metric().name(), {std::nullopt, std::nullopt}});
  }
  if (lines.empty()) return lines;
  request.set_sum(true);
  request.set_attempts(ParseAttempts(invocation.args));
  if (report.compare.has_steps()) *request.mutable_steps() = report.compare.steps();
  for (size_t run = 0; run < report.subjects.size(); ++run) {
    const SubjectName& subject = report.subjects[run];
    request.mutable_selector()->set_job(subject.job);
    *request.mutable_selector()->mutable_matchers() = report.compare.matchers();
    if (subject.attempt) {
      *request.mutable_selector()->add_matchers() =
          *ParseMatcher(absl::StrCat("attempt=", *subject.attempt));
    }
    const auto integrals = client.Integrate(request);
    if (!integrals.ok()) {
      *invocation.env.err << "tachoctl report: without energy: "
                          << Printable(integrals.status().message()) << '\n';
      return {};
    }
    for (EnergyLine& line : lines) {
      for (const v1::Integral& one : *integrals) {
        if (one.series().metric().name() == line.metric) line.runs[run] = one;
      }
    }
  }
  return lines;
}

// What the runs cost. A report does without where the collector does not know.
std::vector<std::optional<v1::CostResponse>> ReadCosts(QueryClient& client,
                                                       const ReportRequest& report) {
  std::vector<std::optional<v1::CostResponse>> costs;
  for (const SubjectName& subject : report.subjects) {
    costs.emplace_back();
    if (subject.attempt) continue;
    v1::CostRequest request;
    request.set_job(subject.job);
    auto cost = client.Cost(request);
    if (cost.ok()) costs.back() = *std::move(cost);
  }
  return costs;
}

int RunReport(const Invocation& invocation) {
  const Environment& env = invocation.env;
  const absl::StatusOr<ReportRequest> request = ParseReportRequest(invocation);
  if (!request.ok()) return UsageError(env, "report", std::string(request.status().message()));
  QueryClient client = Connect(invocation);
  absl::StatusOr<Comparison> comparison =
      ReadComparison(client, request->compare, request->subjects);
  if (!comparison.ok()) return CallError(invocation, client, comparison.status());
  Report report{*std::move(comparison), {}, env.now, env.zone, ZoneName(env.now, env.zone),
                request->curves,        {}, {}};
  report.energy = ReadEnergy(invocation, client, *request, report.comparison);
  report.costs = ReadCosts(client, *request);
  for (const Threshold& threshold : request->thresholds) {
    report.verdicts.push_back(Judge(threshold, report.comparison));
  }
  const std::string document = Document(invocation, report);
  const std::optional<std::string> path = invocation.args.Get("file");
  if (!path) {
    *env.out << document;
  } else if (!WriteFile(env, *path, document)) {
    return kNothing;
  }
  if (report.passed()) return kOk;
  PrintVerdicts(env, report);
  return kThreshold;
}

std::vector<FlagSpec> ReportFlags() {
  std::vector<FlagSpec> flags = {
      {.name = "format",
       .placeholder = "FORMAT",
       .help = "markdown or html. Default: markdown.",
       .choices = {"markdown", "html"}},
      {.name = "threshold",
       .letter = 't',
       .placeholder = "METRIC[:STATISTIC]:LIMIT",
       .help =
           "How far B's metric may be above (+2%), below (-0.5%) or away from (2%) A's; without "
           "%, in the metric's unit. STATISTIC is mean (of the differences where both "
           "have values; the default), last, min or max. Repeat for more.",
       .repeated = true},
      {.name = "file",
       .letter = 'f',
       .placeholder = "FILE",
       .help = "Write the report to this file instead of to standard output."},
      {.name = "curves",
       .placeholder = "N",
       .help = "HTML: draw the curves of N metrics. Default: 12."}};
  flags.insert(flags.end(), CompareFlags().begin(), CompareFlags().end());
  return flags;
}

}  // namespace

Command ReportCommand() {
  return {
      .name = "report",
      .group = CommandGroup::kCompare,
      .operands = "A[@ATTEMPT] B[@ATTEMPT]",
      .summary = "Report how run B differs from run A, with a verdict for CI",
      .details = absl::StrCat(
          R"(The report shows how much each metric changed, attributes that differ, curves (HTML) or sparklines
(Markdown), and whether each --threshold was kept. A threshold also fails if its metric is missing, if
the runs share no step, or if B has NaN or infinite values and A has none. All figures, and therefore
the verdict, are of the samples themselves: --points changes only the curves. The mean of a counter is
its growth per second. Metrics in watts also come to energy: the power of all tasks and chips over
time, of all attempts unless --attempts or JOB@N chooses; more than a minute without a sample is not
covered, and the report says how long that was.

Exit codes:
  0  every threshold was kept, or none was given
  1  the collector refused or has no such job, or the file cannot be written: no verdict
  2  wrong command line: no verdict
  3  no collector at the address: no verdict
  4  a threshold failed; the report was written, and standard error says which

Examples:
  tachoctl report nightly pr-123 --threshold loss:+1% --threshold accuracy:last:-0.5%
  tachoctl report bert@0 bert@1 --format html -f report.html -t step_time_seconds:+5%
  tachoctl report nightly pr-123 -t loss:max:0.25 -o json

JSON: {"verdict": "passed"|"failed"|"none", "thresholds": [{"metric", "statistic",
  "direction": "above"|"below"|"either", "limit", "relative", "change", "passed", "reason"}],
  "energy": [{"metric", "columns": [{"joules", "kilowatt_hours", "covered_seconds",
  "not_covered_seconds"; null where a run has none}]}],
  "costs": [{"currency", "cost", "cost_per_step", "joules"; null where it is not known}],
  )",
          kComparisonJsonHelp, "}\nCSV: the thresholds."),
      .flags = ReportFlags(),
      .min_operands = 2,
      .max_operands = 2,
      .run = RunReport};
}

}  // namespace tacho::ctl
