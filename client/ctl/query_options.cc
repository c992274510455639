#include "client/ctl/query_options.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/selection_parse.h"
#include "client/ctl/time_parse.h"

namespace tacho::ctl {
namespace {

// What --across by time is reduced to unless --points says otherwise.
constexpr uint32_t kPointsAcross = 60;
constexpr uint32_t kMaxPoints = 100'000;  // The collector's limit, said before asking it.

const std::vector<std::pair<std::string, v1::AggregateFunction>>& Functions() {
  static const auto* const functions =
      new std::vector<std::pair<std::string, v1::AggregateFunction>>{
          {"sum", v1::AGGREGATE_FUNCTION_SUM},      {"avg", v1::AGGREGATE_FUNCTION_AVG},
          {"min", v1::AGGREGATE_FUNCTION_MIN},      {"max", v1::AGGREGATE_FUNCTION_MAX},
          {"p50", v1::AGGREGATE_FUNCTION_P50},      {"p90", v1::AGGREGATE_FUNCTION_P90},
          {"p99", v1::AGGREGATE_FUNCTION_P99},      {"count", v1::AGGREGATE_FUNCTION_COUNT},
          {"stddev", v1::AGGREGATE_FUNCTION_STDDEV}};
  return *functions;
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Functions()) names.push_back(name);
  return names;
}

absl::Status Prefixed(absl::string_view flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " ", status.message()));
}

// Leaves `value` alone if the flag is absent.
template <typename Integer>
absl::Status ParseCount(const ParsedArgs& args, absl::string_view flag, Integer minimum,
                        std::optional<Integer>& value) {
  const std::optional<std::string> text = args.Get(flag);
  if (!text) return absl::OkStatus();
  Integer parsed = 0;
  if (!absl::SimpleAtoi(*text, &parsed) || parsed < minimum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " '", *text, "': expected a whole number, ", minimum, " or more"));
  }
  value = parsed;
  return absl::OkStatus();
}

absl::Status ParseSteps(const ParsedArgs& args, v1::RangeRequest& request) {
  if (const std::optional<std::string> steps = args.Get("steps")) {
    absl::StatusOr<v1::StepRange> range = ctl::ParseSteps(*steps);
    if (!range.ok()) return Prefixed("steps", range.status());
    *request.mutable_steps() = *std::move(range);
  }
  const bool by_step = args.Has("by") ? args.Get("by") == "step" : request.has_steps();
  request.set_axis(by_step ? v1::AXIS_STEP : v1::AXIS_TIME);
  return absl::OkStatus();
}

absl::Status ParseAcross(const ParsedArgs& args, v1::RangeRequest& request) {
  const std::optional<std::string> across = args.Get("across");
  if (!across) {
    if (!args.Has("group-by")) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--group-by needs --across: --across avg --group-by host, for example");
  }
  for (const auto& [name, function] : Functions()) {
    if (name == *across) request.mutable_aggregation()->set_function(function);
  }
  for (const std::string& group : args.GetAll("group-by")) {
    for (const auto& label : absl::StrSplit(group, ',', absl::SkipWhitespace())) {
      request.mutable_aggregation()->add_by(std::string(label));
    }
  }
  if (request.axis() == v1::AXIS_TIME && request.max_points() == 0) {
    request.set_max_points(kPointsAcross);
  }
  return absl::OkStatus();
}

}  // namespace

const FlagSpec& MatchFlag() {
  static const auto* const flag = new FlagSpec{
      .name = "match",
      .letter = 'm',
      .placeholder = "LABEL=VALUE",
      .help =
          "Only series for which this holds; also !=, =~ and !~ (RE2, whole value). Labels "
          "are those of the series, and task, host, attempt. Repeat for more: all must hold.",
      .repeated = true};
  return *flag;
}

const std::vector<FlagSpec>& TimeFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "since", .placeholder = "AGE", .help = "Only the last 15m, 1h30m, 2d, …"},
      {.name = "from",
       .placeholder = "TIME",
       .help = "From this time on: 2026-01-31T12:00:00Z, 2026-01-31, '2026-01-31 12:00', seconds "
               "since 1970, '2h ago', today, yesterday."},
      {.name = "to", .placeholder = "TIME", .help = "Before this time; the same forms, and now."}};
  return *flags;
}

const std::vector<FlagSpec>& QueryFlags() {
  static const auto* const flags = [] {
    auto* const list = new std::vector<FlagSpec>{MatchFlag()};
    list->insert(list->end(), TimeFlags().begin(), TimeFlags().end());
    const std::vector<FlagSpec> more = {
        {.name = "steps",
         .placeholder = "A:B",
         .help = "Only these training steps, both included; A: and :B are open."},
        {.name = "by",
         .placeholder = "AXIS",
         .help = "Order, reduce and aggregate by time or by step. Default: time; step where "
                 "--steps is given.",
         .choices = {"time", "step"}},
        {.name = "points",
         .letter = 'n',
         .placeholder = "N",
         .help = "Reduce each series to at most N points that keep minimum, average and maximum."},
        {.name = "attempt", .placeholder = "N", .help = "Only this start of the job, from 0."},
        {.name = "across",
         .placeholder = "FUNCTION",
         .help = "One series of many: sum, avg, min, max, p50, p90, p99, count or stddev over "
                 "the series of a metric. By time it needs --points (60 unless you say so).",
         .choices = FunctionNames()},
        {.name = "group-by",
         .placeholder = "LABELS",
         .help = "With --across: keep these labels apart, like host or task,chip.",
         .repeated = true},
        {.name = "limit",
         .placeholder = "N",
         .help = "Table: rows shown of each, the first and the last (0: all; default 40 on a "
                 "terminal, else all). JSON, CSV: stop after N samples."}};
    list->insert(list->end(), more.begin(), more.end());
    return list;
  }();
  return *flags;
}

absl::StatusOr<std::optional<v1::TimeRange>> ParseTimeRange(const ParsedArgs& args, absl::Time now,
                                                            absl::TimeZone zone) {
  v1::TimeRange range;
  if (const std::optional<std::string> since = args.Get("since")) {
    if (args.Has("from")) {
      return absl::InvalidArgumentError("--since and --from both say where to begin; give one");
    }
    const absl::StatusOr<absl::Duration> age = ParseDuration(*since);
    if (!age.ok()) return Prefixed("since", age.status());
    range.set_begin_unix_ns(absl::ToUnixNanos(now - *age));
  }
  if (const std::optional<std::string> from = args.Get("from")) {
    const absl::StatusOr<absl::Time> time = ParseTime(*from, now, zone);
    if (!time.ok()) return Prefixed("from", time.status());
    range.set_begin_unix_ns(absl::ToUnixNanos(*time));
  }
  if (const std::optional<std::string> to = args.Get("to")) {
    const absl::StatusOr<absl::Time> time = ParseTime(*to, now, zone);
    if (!time.ok()) return Prefixed("to", time.status());
    range.set_end_unix_ns(absl::ToUnixNanos(*time));
    if (range.end_unix_ns() <= range.begin_unix_ns()) {
      return absl::InvalidArgumentError("--to is not after the begin: nothing lies between");
    }
  }
  if (!args.Has("since") && !args.Has("from") && !args.Has("to")) {
    return std::optional<v1::TimeRange>();
  }
  return std::optional<v1::TimeRange>(range);
}

absl::StatusOr<std::vector<v1::Matcher>> ParseMatchers(const ParsedArgs& args) {
  std::vector<v1::Matcher> matchers;
  for (const std::string& text : args.GetAll("match")) {
    absl::StatusOr<v1::Matcher> matcher = ParseMatcher(text);
    if (!matcher.ok()) return Prefixed("match", matcher.status());
    matchers.push_back(*std::move(matcher));
  }
  return matchers;
}

absl::StatusOr<QueryOptions> ParseQueryOptions(const ParsedArgs& args, absl::Time now,
                                               absl::TimeZone zone) {
  QueryOptions options;
  v1::RangeRequest& request = options.request;
  v1::Selector& selector = *request.mutable_selector();
  selector.set_job(args.positionals()[0]);
  selector.mutable_metrics()->Assign(args.positionals().begin() + 1, args.positionals().end());
  auto matchers = ParseMatchers(args);
  if (!matchers.ok()) return matchers.status();
  selector.mutable_matchers()->Assign(matchers->begin(), matchers->end());

  std::optional<uint32_t> attempt;
  std::optional<uint32_t> points;
  std::optional<uint64_t> limit;
  for (const absl::Status& status : {ParseCount<uint32_t>(args, "attempt", 0, attempt),
                                     ParseCount<uint32_t>(args, "points", 1, points),
                                     ParseCount<uint64_t>(args, "limit", 0, limit)}) {
    if (!status.ok()) return status;
  }
  if (attempt) {
    *selector.add_matchers() = *ParseMatcher(absl::StrCat("attempt=", *attempt));
  }
  if (points && *points > kMaxPoints) {
    return absl::InvalidArgumentError(
        absl::StrCat("--points ", *points, ": at most ", kMaxPoints, "; leave it out for all"));
  }
  request.set_max_points(points.value_or(0));
  options.limit = limit;

  auto time = ParseTimeRange(args, now, zone);
  if (!time.ok()) return time.status();
  if (*time) *request.mutable_time() = **time;
  if (const absl::Status status = ParseSteps(args, request); !status.ok()) return status;
  if (const absl::Status status = ParseAcross(args, request); !status.ok()) return status;
  return options;
}

}  // namespace tacho::ctl
