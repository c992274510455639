#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/series_name.h"

namespace tacho::ctl {
namespace {

int Run(const Invocation& invocation) {
  QueryClient client = Connect(invocation);
  const std::string& job = invocation.Positional(0);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  const auto writer = MakeRecordWriter(
      invocation, "metrics",
      {{"metric", "METRIC"}, {"type", "TYPE"}, {"unit", "UNIT"}, {"help", "HELP"}});
  for (const v1::Metric& metric : answer->metrics()) {
    writer->Row({metric.name(), TypeName(metric.type()), metric.unit(), metric.help()});
  }
  writer->Finish();
  return answer->metrics().empty() ? kNothing : kOk;
}

}  // namespace

Command MetricsCommand() {
  return {.name = "metrics",
          .group = CommandGroup::kHistory,
          .operands = "JOB",
          .summary = "List what a job records: its metrics with unit and meaning",
          .details = R"(Example:
  tachoctl metrics bert-base

JSON: {"metrics": [{"metric", "type", "unit", "help"}]})",
          .flags = {},
          .min_operands = 1,
          .max_operands = 1,
          .run = Run};
}

}  // namespace tacho::ctl
