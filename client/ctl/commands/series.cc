// Commands about what series there are: their list, their metrics and labels, and how many there
// are beside the limits.
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

std::vector<Cell> Row(const v1::SeriesInfo& series) {
  return {series.metric().name(),
          series.has_task() ? Cell(uint64_t{series.task()}) : Cell(),
          series.host(),
          OwnLabelPairs(series),
          TypeName(series.metric().type()),
          series.metric().unit(),
          series.metric().help()};
}

int RunSeries(const Invocation& invocation) {
  const auto matchers = ParseMatchers(invocation.args);
  if (!matchers.ok()) {
    return UsageError(invocation.env, "series", std::string(matchers.status().message()));
  }
  const std::vector<std::string>& operands = invocation.args.positionals();
  const std::string& job = operands[0];
  const std::vector<std::string> metrics(operands.begin() + 1, operands.end());
  v1::ListSeriesRequest request;
  request.mutable_selector()->set_job(job);
  request.mutable_selector()->mutable_metrics()->Assign(metrics.begin(), metrics.end());
  request.mutable_selector()->mutable_matchers()->Assign(matchers->begin(), matchers->end());

  RecordWriter writer(invocation, "series",
                      {{"metric", "METRIC", Kind::kText},
                       {"task", "TASK", Kind::kNumber},
                       {"host", "HOST", Kind::kText},
                       {"labels", "LABELS", Kind::kMap},
                       {"type", "TYPE", Kind::kText},
                       {"unit", "UNIT", Kind::kText},
                       {"help", "", Kind::kText}});
  bool any = false;
  QueryClient client = Connect(invocation);
  const absl::Status status =
      client.ListSeries(request, [&](const v1::ListSeriesResponse& response) {
        for (const v1::SeriesInfo& series : response.series()) writer.Row(Row(series));
        any = any || !response.series().empty();
        invocation.env.out->flush();
        return invocation.env.out->good();
      });
  writer.Finish();
  if (!status.ok()) return JobCallError(invocation, client, job, status);
  if (any) return kOk;
  if (!ReportUnknownMetrics(invocation, client, job, metrics)) {
    *invocation.env.err << "tachoctl: no series matches; check METRIC and --match\n";
  }
  return kNothing;
}

int RunMetrics(const Invocation& invocation) {
  QueryClient client = Connect(invocation);
  const std::string& job = invocation.Positional(0);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  RecordWriter writer(invocation, "metrics",
                      {{"metric", "METRIC"}, {"type", "TYPE"}, {"unit", "UNIT"}, {"help", "HELP"}});
  for (const v1::Metric& metric : answer->metrics()) {
    writer.Row({metric.name(), TypeName(metric.type()), metric.unit(), metric.help()});
  }
  writer.Finish();
  return answer->metrics().empty() ? kNothing : kOk;
}

absl::StatusOr<v1::LabelValuesRequest> ParseLabelsRequest(const Invocation& invocation) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  v1::LabelValuesRequest request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(operands[0]);
  if (operands.size() > 1) request.set_label(operands[1]);
  const std::vector<std::string> metrics = invocation.args.GetAll("metric");
  selector.mutable_metrics()->Assign(metrics.begin(), metrics.end());
  TACHO_ASSIGN_OR_RETURN(const auto matchers, ParseMatchers(invocation.args));
  selector.mutable_matchers()->Assign(matchers.begin(), matchers.end());
  return request;
}

std::string WhyNone(const std::string& job, const std::string& label) {
  if (label.empty()) {
    return absl::StrCat(
        "no matching series has labels of its own; task, host, attempt and metric "
        "always exist: tachoctl labels ",
        job, " task");
  }
  return absl::StrCat("no matching series has a label '", label,
                      "'; to list the labels: tachoctl labels ", job);
}

int RunLabels(const Invocation& invocation) {
  const absl::StatusOr<v1::LabelValuesRequest> request = ParseLabelsRequest(invocation);
  if (!request.ok()) {
    return UsageError(invocation.env, "labels", std::string(request.status().message()));
  }
  const std::string& job = request->selector().job();
  QueryClient client = Connect(invocation);
  const auto answer = client.LabelValues(*request);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  const bool names = request->label().empty();
  RecordWriter writer(
      invocation, names ? "labels" : "values",
      {{names ? "label" : "value", names ? "LABEL" : "VALUE"}, {"series", "SERIES", Kind::kCount}});
  for (const v1::LabelValue& value : answer->values()) writer.Row({value.value(), value.series()});
  writer.Finish();
  if (!answer->values().empty()) return kOk;
  *invocation.env.err << "tachoctl: " << Printable(WhyNone(job, request->label())) << "\n";
  return kNothing;
}

Cell TextOrNothing(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

void Write(const std::string& kind, const v1::CardinalityUse& use, RecordWriter* writer) {
  Cell share;
  if (use.limit() > 0) {
    share = 100 * static_cast<double>(use.used()) / static_cast<double>(use.limit());
  }
  writer->Row({kind, TextOrNothing(use.job()), TextOrNothing(use.name()), use.used(), use.limit(),
               share, Cell(), Cell(), Cell(), Cell(), Cell()});
}

void Write(const v1::CardinalityRefusal& refusal, RecordWriter* writer) {
  writer->Row({refusal.action(), TextOrNothing(refusal.job()), TextOrNothing(refusal.name()),
               refusal.series(), Cell(), Cell(), refusal.limit(), refusal.too_many(),
               refusal.example(), refusal.detail(), UnixNs{refusal.last_unix_ns()}});
}

int RunCardinality(const Invocation& invocation) {
  v1::CardinalityRequest request;
  if (!invocation.args.positionals().empty()) request.set_job(invocation.Positional(0));
  if (const auto text = invocation.args.Get("top")) {
    uint32_t top = 0;
    if (!absl::SimpleAtoi(*text, &top) || top == 0) {
      return UsageError(invocation.env, "cardinality",
                        absl::StrCat("--top '", *text, "': expected a whole number, 1 or more"));
    }
    request.set_top(top);
  }
  QueryClient client = Connect(invocation);
  const auto answer = client.Cardinality(request);
  if (!answer.ok()) {
    return request.job().empty() ? CallError(invocation, client, answer.status())
                                 : JobCallError(invocation, client, request.job(), answer.status());
  }
  RecordWriter writer(invocation, "cardinality",
                      {{"kind", "KIND", Kind::kText},
                       {"job", "JOB", Kind::kText},
                       {"name", "NAME", Kind::kText},
                       {"count", "COUNT", Kind::kCount},
                       {"limit", "LIMIT", Kind::kCount},
                       {"percent", "%", Kind::kNumber},
                       {"broken_limit", "BROKEN LIMIT", Kind::kText},
                       {"too_many", "", Kind::kNumber},
                       {"example", "EXAMPLE", Kind::kText},
                       {"detail", "", Kind::kText},
                       {"last", "LAST", Kind::kAge}});
  for (const auto& total : answer->totals()) Write("total", total, &writer);
  for (const auto& job : answer->jobs()) Write("job", job, &writer);
  for (const auto& metric : answer->metrics()) Write("metric", metric, &writer);
  for (const auto& label : answer->labels()) Write("label", label, &writer);
  for (const auto& refusal : answer->refusals()) Write(refusal, &writer);
  writer.Finish();
  if (invocation.common.format != Format::kTable) return kOk;
  for (const auto& refusal : answer->refusals()) {
    *invocation.env.out << Printable(absl::StrCat(refusal.job(), ": ", refusal.detail())) << "\n";
  }
  if (answer->jobs_left_out() > 0) {
    *invocation.env.out << "Metrics and labels of " << Count(answer->jobs_left_out(), "job")
                        << " not in use are left out: name a job to see its own.\n";
  }
  return kOk;
}

}  // namespace

Command SeriesCommand() {
  return {.name = "series",
          .group = CommandGroup::kHistory,
          .operands = "JOB [METRIC...]",
          .summary = "List the series of a job: each metric with its task, host and labels",
          .details = R"(Examples:
  tachoctl series bert-base
  tachoctl series bert-base loss -m task=0
  tachoctl series bert-base -m 'host=~web-.*' -o csv

JSON: {"series": [{"metric", "task" or null, "host", "labels": {}, "type", "unit", "help"}]})",
          .flags = {MatchFlag()},
          .min_operands = 1,
          .max_operands = kAnyNumber,
          .run = RunSeries};
}

Command MetricsCommand() {
  return {.name = "metrics",
          .group = CommandGroup::kHistory,
          .operands = "JOB",
          .summary = "List the metrics of a job, with unit and meaning",
          .details = R"(Example:
  tachoctl metrics bert-base

JSON: {"metrics": [{"metric", "type", "unit", "help"}]})",
          .flags = {},
          .min_operands = 1,
          .max_operands = 1,
          .run = RunMetrics};
}

Command LabelsCommand() {
  return {
      .name = "labels",
      .group = CommandGroup::kHistory,
      .operands = "JOB [LABEL]",
      .summary = "List the labels of a job's series, or the values of one",
      .details =
          R"(LABEL is a label of the series, or task, host, attempt or metric. These four always exist and are
not listed.

Examples:
  tachoctl labels bert-base
  tachoctl labels bert-base chip --metric chip_power_watts -m host=web-3

JSON: {"labels": [{"label", "series"}]}; with LABEL {"values": [{"value", "series"}]})",
      .flags = {MatchFlag(),
                {.name = "metric",
                 .placeholder = "NAME",
                 .help = "Only series of this metric. Repeat for more.",
                 .repeated = true}},
      .min_operands = 1,
      .max_operands = 2,
      .run = RunLabels};
}

Command CardinalityCommand() {
  return {
      .name = "cardinality",
      .group = CommandGroup::kOperate,
      .operands = "[JOB]",
      .summary = "Show how many series there are, and what the limits refused",
      .details =
          R"(Shows the total of the collector, and its largest jobs, metrics (by series) and labels (by distinct
values), each beside its limit; then what the limits refused, folded or observed since the collector
started, with an example and a remedy. With JOB: only that job.

Examples:
  tachoctl cardinality
  tachoctl cardinality bert-base --top 5
  tachoctl cardinality -o json | jq '.cardinality[] | select(.kind == "reject")'

JSON: {"cardinality": [{"kind": "total", "job", "metric", "label", "reject", "fold" or "observe",
  "job" or null, "name" or null, "count", "limit" or null, "percent" or null,
  "broken_limit" or null, "too_many" or null, "example" or null, "detail" or null,
  "last", "last_unix_ns"}]}. "count" counts series, or the values of a label. "too_many" is how
  far refused series exceeded the limit at most.)",
      .flags = {{.name = "top",
                 .placeholder = "N",
                 .help = "Show at most N jobs, metrics, labels and refusals each. Default: 20."}},
      .min_operands = 0,
      .max_operands = 1,
      .run = RunCardinality};
}

}  // namespace tacho::ctl
