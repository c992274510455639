#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

absl::StatusOr<v1::LabelValuesRequest> ParseRequest(const Invocation& invocation) {
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
        "no series that matches has labels of its own; task, host, attempt and "
        "metric are there always: tachoctl labels ",
        job, " task");
  }
  return absl::StrCat("no series that matches has a label '", label,
                      "'; what there is: tachoctl labels ", job);
}

int Run(const Invocation& invocation) {
  const absl::StatusOr<v1::LabelValuesRequest> request = ParseRequest(invocation);
  if (!request.ok()) {
    return UsageError(invocation.env, "labels", std::string(request.status().message()));
  }
  const std::string& job = request->selector().job();
  QueryClient client = Connect(invocation);
  const auto answer = client.LabelValues(*request);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  const bool names = request->label().empty();
  const auto writer = MakeRecordWriter(invocation, names ? "labels" : "values",
                                       {{names ? "label" : "value", names ? "LABEL" : "VALUE"},
                                        {"series", "SERIES", Kind::kNumber}});
  for (const v1::LabelValue& value : answer->values()) writer->Row({value.value(), value.series()});
  writer->Finish();
  if (!answer->values().empty()) return kOk;
  *invocation.env.err << "tachoctl: " << Printable(WhyNone(job, request->label())) << "\n";
  return kNothing;
}

}  // namespace

Command LabelsCommand() {
  return {
      .name = "labels",
      .group = CommandGroup::kHistory,
      .operands = "JOB [LABEL]",
      .summary = "List the labels of a job's series, or the values of one",
      .details =
          R"(LABEL is a label of the series, or task, host, attempt or metric; these four, which are always
there, are not listed.

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
      .run = Run};
}

}  // namespace tacho::ctl
