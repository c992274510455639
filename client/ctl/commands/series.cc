#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/series_name.h"
#include "client/ctl/views/metric_check.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

std::vector<Cell> Row(const v1::SeriesInfo& series) {
  StringMap labels;
  for (const v1::Label& label : series.labels()) labels.emplace_back(label.name(), label.value());
  return {series.metric().name(),
          series.has_task() ? Cell(uint64_t{series.task()}) : Cell(),
          series.host(),
          std::move(labels),
          TypeName(series.metric().type()),
          series.metric().unit(),
          series.metric().help()};
}

int Run(const Invocation& invocation) {
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

  const auto writer = MakeRecordWriter(invocation, "series",
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
        for (const v1::SeriesInfo& series : response.series()) writer->Row(Row(series));
        any = any || !response.series().empty();
        invocation.env.out->flush();
        return invocation.env.out->good();
      });
  writer->Finish();
  if (!status.ok()) return JobCallError(invocation, client, job, status);
  if (any) return kOk;
  if (!ReportUnknownMetrics(invocation, client, job, metrics)) {
    *invocation.env.err << "tachoctl: no series matches\n";
  }
  return kNothing;
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
          .run = Run};
}

}  // namespace tacho::ctl
