// 'plot': reads each subject's curves with as many places as the terminal has columns, and draws
// them on common axes.
#include "client/ctl/text/plot.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/call/curve_query.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr size_t kPipedWidth = 80;
constexpr uint64_t kMostRows = 200;
constexpr size_t kMostPoints = 2000;

struct PlotRequest {
  std::vector<SubjectName> subjects;
  std::vector<std::string> metrics;
  std::vector<std::string> group_by;
  v1::RangeRequest range;  // The same for each subject, except for the selector's job and attempt.
  bool log_scale = false;
  size_t height = 0;
};

struct NamedCurve {
  SubjectName subject;
  MetricCurve curve;
};

absl::Status ParseAxisFlags(const Invocation& invocation, PlotRequest& plot) {
  const ParsedArgs& args = invocation.args;
  const auto matchers = ParseMatchers(args);
  const auto time = ParseTimeRange(args, invocation.env.now, invocation.env.zone);
  const auto steps = ParseStepsFlag(args);
  const auto counter = ParseCounter(args);
  for (const absl::Status& status :
       {matchers.status(), time.status(), steps.status(), counter.status()}) {
    if (!status.ok()) return status;
  }
  plot.range.mutable_selector()->mutable_matchers()->Assign(matchers->begin(), matchers->end());
  if (*time) *plot.range.mutable_time() = **time;
  if (*steps) *plot.range.mutable_steps() = **steps;
  plot.range.set_counter(*counter);
  const bool by_step = args.Get("by") == "step" || (!args.Has("by") && steps->has_value());
  plot.range.set_axis(by_step ? v1::AXIS_STEP : v1::AXIS_TIME);
  if (by_step && *counter != v1::COUNTER_FUNCTION_UNSPECIFIED) {
    return absl::InvalidArgumentError("--rate and --increase work by time only: add --by time");
  }
  plot.range.set_attempts(args.Has("attempts") ? ParseAttempts(args)
                          : by_step            ? v1::ATTEMPTS_EFFECTIVE
                                               : v1::ATTEMPTS_ALL);
  return absl::OkStatus();
}

absl::StatusOr<PlotRequest> ParsePlotRequest(const Invocation& invocation) {
  PlotRequest plot;
  const std::vector<std::string>& operands = invocation.args.positionals();
  for (size_t i = 0; i + 1 < operands.size(); ++i)
    plot.subjects.push_back(ParseSubject(operands[i]));
  plot.metrics = invocation.args.GetAll("metric");
  plot.metrics.insert(plot.metrics.begin(), operands.back());
  for (const std::string& group : invocation.args.GetAll("group-by")) {
    for (const auto& label : absl::StrSplit(group, ',', absl::SkipWhitespace())) {
      plot.group_by.emplace_back(label);
    }
  }
  const auto height = ParseNumber(invocation.args, "height", 4, kMostRows);
  if (!height.ok()) return height.status();
  plot.height = height->value_or(PlotOptions().height);
  plot.log_scale = invocation.args.Has("log");
  TACHO_RETURN_IF_ERROR(ParseAxisFlags(invocation, plot));
  plot.range.mutable_selector()->mutable_metrics()->Assign(plot.metrics.begin(),
                                                           plot.metrics.end());
  return plot;
}

// Names each curve by job, metric and group, as far as they differ.
std::vector<Curve> NameCurves(const PlotRequest& plot, std::vector<NamedCurve> named) {
  std::vector<Curve> curves;
  for (NamedCurve& one : named) {
    std::string name;
    if (plot.subjects.size() > 1 || (plot.metrics.size() == 1 && one.curve.group.empty())) {
      name = one.subject.Text();
    }
    if (plot.metrics.size() > 1) {
      absl::StrAppend(&name, name.empty() ? "" : " ", one.curve.metric.name());
    }
    if (!one.curve.group.empty()) {
      absl::StrAppend(&name, name.empty() ? "" : " ", one.curve.group);
    }
    if (one.curve.series > 1) absl::StrAppend(&name, " (", one.curve.series, " series)");
    curves.push_back({std::move(name), std::move(one.curve.points), one.curve.last});
  }
  return curves;
}

std::string Title(const PlotRequest& plot, const std::vector<NamedCurve>& curves) {
  std::string title;
  std::set<std::string> units;
  for (const std::string& metric : plot.metrics) {
    absl::StrAppend(&title, title.empty() ? "" : ", ", metric);
  }
  for (const NamedCurve& one : curves) units.insert(one.curve.metric.unit());
  std::string unit = units.size() == 1 && *units.begin() != "1" ? *units.begin() : "";
  if (plot.range.counter() == v1::COUNTER_FUNCTION_RATE) absl::StrAppend(&unit, "/s");
  if (!unit.empty()) absl::StrAppend(&title, " [", unit, "]");
  return title;
}

void WriteJson(std::ostream& out, const PlotRequest& plot, const std::vector<NamedCurve>& curves) {
  const bool by_step = plot.range.axis() == v1::AXIS_STEP;
  JsonWriter json(out);
  const auto write_point = [&](const CurvePoint& point) {
    if (by_step) {
      json.Field("step", point.x);
    } else {
      json.TimeFields("time", static_cast<int64_t>(point.x));
    }
    json.Field("min", point.low);
    json.Field("avg", point.middle);
    json.Field("max", point.high);
    json.Field("count", point.count);
    json.Field("non_finite", point.non_finite);
  };
  json.Object([&] {
    json.Field("axis", by_step ? "step" : "time");
    json.Objects("curves", curves, [&](const NamedCurve& one) {
      json.Field("job", one.subject.Text());
      json.Field("metric", one.curve.metric.name());
      json.Field("unit", one.curve.metric.unit());
      json.Field("group", one.curve.group);
      json.Field("series", one.curve.series);
      json.Field("last", one.curve.last);
      json.Objects("points", one.curve.points, write_point);
    });
  });
}

void WriteCsv(std::ostream& out, const PlotRequest& plot, const std::vector<NamedCurve>& curves) {
  const bool by_step = plot.range.axis() == v1::AXIS_STEP;
  out << CsvLine({"job", "metric", "group", by_step ? "step" : "time_unix_ns", "min", "avg", "max",
                  "count", "non_finite"});
  for (const NamedCurve& one : curves) {
    for (const CurvePoint& point : one.curve.points) {
      out << CsvLine({one.subject.Text(), one.curve.metric.name(), one.curve.group,
                      by_step ? ExactNumber(point.x) : absl::StrCat(static_cast<int64_t>(point.x)),
                      ExactNumber(point.low), ExactNumber(point.middle), ExactNumber(point.high),
                      absl::StrCat(point.count), absl::StrCat(point.non_finite)});
    }
  }
}

int Draw(const Invocation& invocation, const PlotRequest& plot, std::vector<NamedCurve> named,
         size_t width) {
  const Environment& env = invocation.env;
  if (named.size() > kMostCurves) {
    *env.err << "tachoctl: " << named.size() << " curves; only the first " << kMostCurves
             << " are drawn. Use --match, or fewer labels in --group-by\n";
    named.resize(kMostCurves);
  }
  PlotOptions options;
  options.width = width;
  options.height = plot.height;
  options.axis = plot.range.axis() == v1::AXIS_STEP ? PlotAxis::kStep : PlotAxis::kTime;
  options.log_scale = plot.log_scale;
  options.unicode = env.unicode;
  options.color = env.color;
  options.zone = env.zone;
  options.zone_name = ZoneName(env.now, env.zone);
  options.title = Title(plot, named);
  const std::vector<Curve> curves = NameCurves(plot, std::move(named));
  if (!AnyDrawn(curves, options.log_scale)) {
    *env.err << "tachoctl: "
             << (AnyDrawn(curves, false) ? "no value is above 0; leave out --log\n"
                                         : "every value is NaN or infinite; to see where that "
                                           "began: tachoctl nonfinite\n");
    return kNothing;
  }
  for (const std::string& line : DrawPlot(curves, options)) *env.out << line << '\n';
  return kOk;
}

int RunPlot(const Invocation& invocation) {
  const absl::StatusOr<PlotRequest> plot = ParsePlotRequest(invocation);
  if (!plot.ok()) {
    return UsageError(invocation.env, "plot", std::string(plot.status().message()));
  }
  const size_t width = invocation.env.width == 0 ? kPipedWidth : invocation.env.width;
  QueryClient client = Connect(invocation);
  std::vector<NamedCurve> curves;
  for (const SubjectName& subject : plot->subjects) {
    v1::RangeRequest request = plot->range;
    request.mutable_selector()->set_job(subject.job);
    if (subject.attempt) {
      *request.mutable_selector()->add_matchers() =
          *ParseMatcher(absl::StrCat("attempt=", *subject.attempt));
      request.set_attempts(v1::ATTEMPTS_ALL);
    }
    // As many places as there are columns: what lies between two of them is in their extremes.
    auto read =
        ReadCurves(client, std::move(request), std::min(width, kMostPoints), plot->group_by);
    if (!read.ok()) return JobCallError(invocation, client, subject.job, read.status());
    std::set<std::string> found;
    for (MetricCurve& curve : *read) {
      found.insert(curve.metric.name());
      curves.push_back({subject, std::move(curve)});
    }
    for (const std::string& metric : plot->metrics) {
      if (found.count(metric) > 0 ||
          ReportUnknownMetrics(invocation, client, subject.job, {metric})) {
        continue;
      }
      *invocation.env.err << "tachoctl: no samples of '" << metric << "' of job '" << subject.Text()
                          << "' match; widen --since, --steps or --match"
                          << (plot->range.axis() == v1::AXIS_STEP
                                  ? ", or --by time for rows without a step\n"
                                  : "\n");
    }
  }
  if (curves.empty()) return kNothing;
  switch (invocation.common.format) {
    case Format::kJson:
      WriteJson(*invocation.env.out, *plot, curves);
      return kOk;
    case Format::kCsv:
      WriteCsv(*invocation.env.out, *plot, curves);
      return kOk;
    case Format::kTable:
      break;
  }
  return Draw(invocation, *plot, std::move(curves), width);
}

std::vector<FlagSpec> PlotFlags() {
  std::vector<FlagSpec> flags = {
      {.name = "by",
       .placeholder = "AXIS",
       .help = "The horizontal axis: time or step. Default: step if --steps is given, else time.",
       .choices = {"time", "step"}},
      {.name = "metric",
       .placeholder = "NAME",
       .help = "Also draw this metric, on the same axes. Repeat for more.",
       .repeated = true},
      {.name = "group-by",
       .placeholder = "LABELS",
       .help = "One curve for each value of these labels, like task or host,chip. Default: one "
               "curve for all series of a metric.",
       .repeated = true},
      {.name = "log", .help = "Logarithmic scale; values of 0 and below are left out."},
      {.name = "height", .placeholder = "ROWS", .help = "The height of the grid. Default: 18."},
      StepsFlag(),
      AttemptsFlag("effective by step, all by time"),
      MatchFlag()};
  flags.insert(flags.end(), TimeFlags().begin(), TimeFlags().end());
  flags.insert(flags.end(), CounterFlags().begin(), CounterFlags().end());
  return flags;
}

}  // namespace

Command PlotCommand() {
  return {
      .name = "plot",
      .group = CommandGroup::kHistory,
      .operands = "JOB[@ATTEMPT]... METRIC",
      .summary = "Draw the course of a metric, of one or several jobs, in the terminal",
      .details =
          R"(A curve is the average of all series of its metric (all tasks and chips, unless --match or
--group-by restricts them); the range from their lowest to their highest value is shaded. Places with
NaN or infinite values are marked above the grid. The plot is as wide as the terminal, or 80 columns
without one; COLUMNS overrides both.

JOB@N is attempt N of the job only. (If a job's own name ends like that, add one more '@'.)

Examples:
  tachoctl plot bert-base loss --by step
  tachoctl plot bert-base bert-large@0 loss --by step --log
  tachoctl plot bert-base loss --metric eval_loss --steps 40000:
  tachoctl plot bert-base step_time_seconds --group-by host --since 1h
  tachoctl plot bert-base host_network_bytes --rate --since 1d

The legend has the last samples themselves (the average over the series that reach to the end), not
the average of the last place, and the lowest and the highest sample.

JSON: {"axis": "time"|"step", "curves": [{"job", "metric", "unit", "group", "series", "last",
  "points": [{"step" or "time" and "time_unix_ns", "min", "avg", "max", "count", "non_finite"}]}]}
NaN is written as in 'query'. CSV: the same fields, one line for each point.)",
      .flags = PlotFlags(),
      .min_operands = 2,
      .max_operands = kAnyNumber,
      .run = RunPlot};
}

}  // namespace tacho::ctl
