#include <optional>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/number_format.h"
#include "client/ctl/views/metric_check.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

constexpr uint64_t kMostSeries = 10'000;  // The collector's limit.

absl::StatusOr<v1::FirstNonFiniteRequest> ParseRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  const std::vector<std::string>& operands = args.positionals();
  v1::FirstNonFiniteRequest request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(operands[0]);
  selector.mutable_metrics()->Assign(operands.begin() + 1, operands.end());
  const auto matchers = ParseMatchers(args);
  const auto time = ParseTimeRange(args, invocation.env.now, invocation.env.zone);
  const auto steps = ParseStepsFlag(args);
  const auto limit = ParseNumber(args, "limit", 1, kMostSeries);
  for (const absl::Status& status :
       {matchers.status(), time.status(), steps.status(), limit.status()}) {
    if (!status.ok()) return status;
  }
  selector.mutable_matchers()->Assign(matchers->begin(), matchers->end());
  if (*time) *request.mutable_time() = **time;
  if (*steps) *request.mutable_steps() = **steps;
  request.set_attempts(ParseAttempts(args));
  request.set_max_series(static_cast<uint32_t>(limit->value_or(0)));
  return request;
}

std::vector<Cell> Row(const v1::NonFinite& one) {
  const v1::SeriesInfo& series = one.series();
  StringMap labels;
  for (const v1::Label& label : series.labels()) labels.emplace_back(label.name(), label.value());
  return {UnixNs{one.time_unix_ns()},
          one.has_step() ? Cell(int64_t{one.step()}) : Cell(),
          series.metric().name(),
          series.has_task() ? Cell(uint64_t{series.task()}) : Cell(),
          series.host(),
          std::move(labels),
          uint64_t{one.attempt()},
          one.value(),
          one.has_last_finite() ? Cell(one.last_finite()) : Cell(),
          one.has_last_finite_step() ? Cell(int64_t{one.last_finite_step()}) : Cell(),
          one.has_last_finite_unix_ns() ? Cell(UnixNs{one.last_finite_unix_ns()}) : Cell(),
          one.non_finite(),
          one.finite_after()};
}

// Said on err beside JSON and CSV, where it would be no part of the document.
void PrintSummary(const Invocation& invocation, const v1::FirstNonFiniteResponse& answer) {
  const bool table = invocation.common.format == Format::kTable;
  if (!table && answer.series_turned() <= static_cast<uint64_t>(answer.spread_size())) return;
  std::ostream& out = table ? *invocation.env.out : *invocation.env.err;
  if (answer.series_turned() == 0) {
    out << "All finite: " << Thousands(answer.samples_examined()) << " samples of "
        << Thousands(answer.series_examined()) << " series\n";
    return;
  }
  out << (table ? "\n" : "tachoctl: ") << Thousands(answer.series_turned()) << " of "
      << Thousands(answer.series_examined()) << " series have values that are NaN or infinite";
  if (answer.series_turned() > static_cast<uint64_t>(answer.spread_size())) {
    out << "; the first " << answer.spread_size() << " are listed, more: --limit";
  }
  out << '\n';
}

int Run(const Invocation& invocation) {
  const absl::StatusOr<v1::FirstNonFiniteRequest> request = ParseRequest(invocation);
  if (!request.ok()) {
    return UsageError(invocation.env, "nonfinite", std::string(request.status().message()));
  }
  const v1::Selector& selector = request->selector();
  QueryClient client = Connect(invocation);
  const auto answer = client.FirstNonFinite(*request);
  if (!answer.ok()) return JobCallError(invocation, client, selector.job(), answer.status());
  if (answer->series_examined() == 0) {
    if (!ReportUnknownMetrics(invocation, client, selector.job(),
                              {selector.metrics().begin(), selector.metrics().end()})) {
      *invocation.env.err << "tachoctl: no series matches; wider: another --match or --since\n";
    }
    return kNothing;
  }
  const auto writer = MakeRecordWriter(invocation, "spread",
                                       {{"time", "TIME", Kind::kTime},
                                        {"step", "STEP", Kind::kNumber},
                                        {"metric", "METRIC", Kind::kText},
                                        {"task", "TASK", Kind::kNumber},
                                        {"host", "HOST", Kind::kText},
                                        {"labels", "", Kind::kMap},
                                        {"attempt", "", Kind::kNumber},
                                        {"value", "VALUE", Kind::kNumber},
                                        {"last_finite", "LAST FINITE", Kind::kNumber},
                                        {"last_finite_step", "", Kind::kNumber},
                                        {"last_finite_time", "", Kind::kTime},
                                        {"non_finite", "NON-FINITE", Kind::kNumber},
                                        {"finite_after", "FINITE AFTER", Kind::kNumber}});
  for (const v1::NonFinite& one : answer->spread()) writer->Row(Row(one));
  writer->Finish();
  PrintSummary(invocation, *answer);
  return kOk;
}

}  // namespace

Command NonFiniteCommand() {
  std::vector<FlagSpec> flags = {MatchFlag()};
  flags.insert(flags.end(), TimeFlags().begin(), TimeFlags().end());
  flags.push_back(StepsFlag());
  flags.push_back(AttemptsFlag("all"));
  flags.push_back({.name = "limit",
                   .placeholder = "N",
                   .help = "At most N series, the first that turned. Default: 100."});
  return {
      .name = "nonfinite",
      .group = CommandGroup::kHistory,
      .operands = "JOB [METRIC...]",
      .summary = "Find where a value became NaN or infinite first, and how it spread",
      .details =
          R"(Each series with such a value is listed with its first one, in the order in which they turned:
where the first line is, it began. FINITE AFTER 0 says that the series never recovered. Exit code 0
whether or not there are any.

Examples:
  tachoctl nonfinite bert-base
  tachoctl nonfinite bert-base loss grad_norm --steps 40000: --attempts effective

JSON: {"spread": [{"time", "time_unix_ns", "step" or null, "metric", "task" or null, "host",
  "labels": {}, "attempt", "value", "last_finite" or null, "last_finite_step" or null,
  "last_finite_time", "last_finite_time_unix_ns" (or "last_finite_time": null), "non_finite",
  "finite_after"}]}; values are "NaN", "Infinity" and "-Infinity".)",
      .flags = std::move(flags),
      .min_operands = 1,
      .max_operands = kAnyNumber,
      .run = Run};
}

}  // namespace tacho::ctl
