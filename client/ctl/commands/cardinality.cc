#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

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

int Run(const Invocation& invocation) {
  v1::CardinalityRequest request;
  if (!invocation.args.positionals().empty()) request.set_job(invocation.Positional(0));
  if (const auto text = invocation.args.Get("top")) {
    uint32_t top = 0;
    if (!absl::SimpleAtoi(*text, &top) || top == 0) {
      return UsageError(invocation.env, "cardinality",
                        absl::StrCat("--top '", *text, "': expected a whole number from 1 on"));
    }
    request.set_top(top);
  }
  QueryClient client = Connect(invocation);
  const auto answer = client.Cardinality(request);
  if (!answer.ok()) {
    return request.job().empty() ? CallError(invocation, client, answer.status())
                                 : JobCallError(invocation, client, request.job(), answer.status());
  }
  const auto writer = MakeRecordWriter(invocation, "cardinality",
                                       {{"kind", "KIND", Kind::kText},
                                        {"job", "JOB", Kind::kText},
                                        {"name", "NAME", Kind::kText},
                                        {"count", "COUNT", Kind::kNumber},
                                        {"limit", "LIMIT", Kind::kNumber},
                                        {"percent", "%", Kind::kNumber},
                                        {"broken_limit", "BROKEN LIMIT", Kind::kText},
                                        {"too_many", "", Kind::kNumber},
                                        {"example", "EXAMPLE", Kind::kText},
                                        {"detail", "", Kind::kText},
                                        {"last", "LAST", Kind::kAge}});
  for (const auto& total : answer->totals()) Write("total", total, writer.get());
  for (const auto& job : answer->jobs()) Write("job", job, writer.get());
  for (const auto& metric : answer->metrics()) Write("metric", metric, writer.get());
  for (const auto& label : answer->labels()) Write("label", label, writer.get());
  for (const auto& refusal : answer->refusals()) Write(refusal, writer.get());
  writer->Finish();
  if (invocation.common.format != Format::kTable) return kOk;
  for (const auto& refusal : answer->refusals()) {
    *invocation.env.out << Printable(absl::StrCat(refusal.job(), ": ", refusal.detail())) << "\n";
  }
  if (answer->jobs_left_out() > 0) {
    *invocation.env.out << "Metrics and labels of " << answer->jobs_left_out()
                        << " jobs that are not in use are left out: name the job.\n";
  }
  return kOk;
}

}  // namespace

Command CardinalityCommand() {
  return {
      .name = "cardinality",
      .group = CommandGroup::kOperate,
      .operands = "[JOB]",
      .summary = "Show how many series there are, of what, and what limits refused",
      .details =
          R"(Of the collector as a whole (total), and the largest jobs, metrics (by their series) and labels
(by their distinct values), each beside its limit; then what was refused, folded or observed since
the collector started, with an example and what to do about it. With JOB: of that job.

Examples:
  tachoctl cardinality
  tachoctl cardinality bert-base --top 5
  tachoctl cardinality -o json | jq '.cardinality[] | select(.kind == "reject")'

JSON: {"cardinality": [{"kind": "total", "job", "metric", "label", "reject", "fold" or "observe",
  "job" or null, "name" or null, "count", "limit" or null, "percent" or null,
  "broken_limit" or null, "too_many" or null, "example" or null, "detail" or null,
  "last", "last_unix_ns"}]}. "count" is series, for a label values; of what was refused at most
  "too_many" too many.)",
      .flags = {{.name = "top",
                 .placeholder = "N",
                 .help = "At most N jobs, metrics, labels and refusals each. Default: 20."}},
      .min_operands = 0,
      .max_operands = 1,
      .run = Run};
}

}  // namespace tacho::ctl
