#include "client/ctl/commands/integrate.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/samples.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

absl::Status CheckFlags(const ParsedArgs& args) {
  for (const char* flag : {"points", "by", "rate", "increase", "quantile", "limit"}) {
    if (!args.Has(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--integrate makes one figure of each series: leave out --", flag));
  }
  if (args.Get("across").value_or("sum") != "sum") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--integrate adds series up: give --across sum, not --across ", *args.Get("across")));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::IntegrateRequest> ParseIntegrateRequest(const Invocation& invocation) {
  const ParsedArgs& args = invocation.args;
  TACHO_RETURN_IF_ERROR(CheckFlags(args));
  // The flags that select series are those of every query.
  TACHO_ASSIGN_OR_RETURN(const QueryOptions options,
                         ParseQueryOptions(args, invocation.env.now, invocation.env.zone));
  const v1::RangeRequest& range = options.request;
  v1::IntegrateRequest request;
  *request.mutable_selector() = range.selector();
  if (range.has_time()) *request.mutable_time() = range.time();
  if (range.has_steps()) *request.mutable_steps() = range.steps();
  request.set_attempts(range.attempts());
  request.set_sum(args.Has("across"));
  *request.mutable_by() = range.aggregation().by();
  if (const std::optional<std::string> text = args.Get("max-gap")) {
    const absl::StatusOr<absl::Duration> gap = ParseDuration(*text);
    if (!gap.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--max-gap ", gap.status().message()));
    }
    request.set_max_gap_ns(absl::ToInt64Nanoseconds(*gap));
  }
  return request;
}

// Absent where what is integrated is no power.
Cell KilowattHoursOf(const v1::Integral& integral) {
  if (integral.unit() != "J") return Cell();
  return KilowattHours(integral.value());
}

Cell TimeOf(bool is_there, int64_t unix_ns) { return is_there ? Cell(UnixNs{unix_ns}) : Cell(); }

void WriteIntegrals(const Invocation& invocation, const std::vector<v1::Integral>& integrals) {
  // A table has only what a person looks for.
  RecordWriter writer(invocation, "integrals",
                      {{"metric", "METRIC"},
                       {"task", "TASK", Kind::kNumber},
                       {"host", "HOST"},
                       {"labels", "LABELS", Kind::kMap},
                       {"value", "INTEGRAL", Kind::kNumber},
                       {"unit", "UNIT"},
                       {"kilowatt_hours", "KWH", Kind::kNumber},
                       {"covered_seconds", "COVERED (S)", Kind::kNumber},
                       {"not_covered_seconds", "NOT COVERED (S)", Kind::kNumber},
                       {"gaps", "GAPS", Kind::kNumber},
                       {"series", "SERIES", Kind::kNumber},
                       {"count", "", Kind::kNumber},
                       {"non_finite", "", Kind::kNumber},
                       {"first_time", "", Kind::kTime},
                       {"last_time", "", Kind::kTime}});
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) / 1e9; };
  for (const v1::Integral& one : integrals) {
    const v1::SeriesInfo& series = one.series();
    writer.Row({series.metric().name(), series.has_task() ? Cell(uint64_t{series.task()}) : Cell(),
                series.host(), OwnLabelPairs(series), one.value(), one.unit(), KilowattHoursOf(one),
                seconds(one.covered_ns()), seconds(one.not_covered_ns()), uint64_t{one.gaps()},
                uint64_t{one.series_count()}, uint64_t{one.count()}, uint64_t{one.non_finite()},
                TimeOf(one.has_first_unix_ns(), one.first_unix_ns()),
                TimeOf(one.has_last_unix_ns(), one.last_unix_ns())});
  }
  writer.Finish();
}

}  // namespace

const std::vector<FlagSpec>& IntegrateFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "integrate",
       .help = "Instead of samples, the integral of each series over time: joules of watts. "
               "--across sum adds the series up."},
      {.name = "max-gap",
       .placeholder = "AGE",
       .help = "With --integrate: a longer time without a finite sample is not bridged, and is "
               "reported as not covered. Default: 1m."}};
  return *flags;
}

int RunIntegrate(const Invocation& invocation) {
  const Environment& env = invocation.env;
  const auto request = ParseIntegrateRequest(invocation);
  if (!request.ok()) return UsageError(env, "query", std::string(request.status().message()));
  QueryClient client = Connect(invocation);
  const auto integrals = client.Integrate(*request);
  const v1::Selector& selector = request->selector();
  if (!integrals.ok()) {
    return SelectorCallError(invocation, client, selector, integrals.status());
  }
  WriteIntegrals(invocation, *integrals);
  if (!integrals->empty()) return kOk;
  const std::vector<std::string> metrics(selector.metrics().begin(), selector.metrics().end());
  if (!ReportUnknownMetrics(invocation, client, selector.job(), metrics)) {
    *env.err << "tachoctl: no samples match; widen --since, --steps or --match\n";
  }
  return kNothing;
}

}  // namespace tacho::ctl
