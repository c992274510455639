// The flags that select and reduce samples, and their requests. Several commands share them, so
// that they mean the same everywhere.
#include "client/ctl/line/query_options.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/line/parse.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

// The number of points for --across by time, unless --points is given.
constexpr uint32_t kPointsAcross = 60;
constexpr uint32_t kMaxPoints = 100'000;  // The collector's limit, checked before the call.

const std::vector<std::pair<std::string, v1::AggregateFunction>>& Functions() {
  static const auto* const functions =
      new std::vector<std::pair<std::string, v1::AggregateFunction>>{
          {"sum", v1::AGGREGATE_FUNCTION_SUM},       {"avg", v1::AGGREGATE_FUNCTION_AVG},
          {"min", v1::AGGREGATE_FUNCTION_MIN},       {"max", v1::AGGREGATE_FUNCTION_MAX},
          {"p50", v1::AGGREGATE_FUNCTION_P50},       {"p90", v1::AGGREGATE_FUNCTION_P90},
          {"p99", v1::AGGREGATE_FUNCTION_P99},       {"count", v1::AGGREGATE_FUNCTION_COUNT},
          {"stddev", v1::AGGREGATE_FUNCTION_STDDEV}, {"quantile", v1::AGGREGATE_FUNCTION_QUANTILE}};
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

absl::Status ParseAxis(const ParsedArgs& args, v1::RangeRequest& request) {
  auto steps = ParseStepsFlag(args);
  if (!steps.ok()) return steps.status();
  if (*steps) *request.mutable_steps() = **steps;
  const bool by_step = args.Has("by") ? args.Get("by") == "step" : request.has_steps();
  request.set_axis(by_step ? v1::AXIS_STEP : v1::AXIS_TIME);
  TACHO_ASSIGN_OR_RETURN(const v1::CounterFunction counter, ParseCounter(args));
  request.set_counter(counter);
  if (by_step && counter != v1::COUNTER_FUNCTION_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        "--rate and --increase work by time only: with --steps, add --by time");
  }
  return absl::OkStatus();
}

absl::Status ParseQuantile(const ParsedArgs& args, v1::RangeRequest& request) {
  const std::optional<std::string> text = args.Get("quantile");
  if (!text) {
    if (args.Get("across") != "quantile") return absl::OkStatus();
    return absl::InvalidArgumentError("--across quantile needs --quantile, like --quantile 0.95");
  }
  if (args.Get("across").value_or("quantile") != "quantile") {
    return absl::InvalidArgumentError(absl::StrCat("--quantile and --across ", *args.Get("across"),
                                                   " exclude each other: give one"));
  }
  double quantile = 0;
  if (!absl::SimpleAtod(*text, &quantile) || !(quantile >= 0 && quantile <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--quantile '", *text, "': expected a number from 0 to 1, like 0.95"));
  }
  request.mutable_aggregation()->set_quantile(quantile);
  return absl::OkStatus();
}

absl::Status ParseAcross(const ParsedArgs& args, v1::RangeRequest& request) {
  std::optional<std::string> across = args.Get("across");
  TACHO_RETURN_IF_ERROR(ParseQuantile(args, request));
  if (args.Has("quantile")) across = "quantile";
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
          "Only series that match; also !=, =~ and !~ (RE2, whole value). LABEL is a label "
          "of the series, or task, host or attempt. Repeat for more: all must match.",
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
      {.name = "to",
       .placeholder = "TIME",
       .help = "Before this time, in the same forms, or now."}};
  return *flags;
}

const std::vector<FlagSpec>& QueryFlags() {
  static const auto* const flags = [] {
    auto* const list = new std::vector<FlagSpec>{MatchFlag()};
    list->insert(list->end(), TimeFlags().begin(), TimeFlags().end());
    const std::vector<FlagSpec> more = {
        StepsFlag(),
        {.name = "by",
         .placeholder = "AXIS",
         .help = "Order, reduce and aggregate by time or by step. Default: step if --steps is "
                 "given, else time.",
         .choices = {"time", "step"}},
        {.name = "points",
         .letter = 'n',
         .placeholder = "N",
         .help = "Reduce each series to at most N points that keep minimum, average and maximum."},
        {.name = "attempt", .placeholder = "N", .help = "Only this start of the job, from 0."},
        AttemptsFlag("all"),
        {.name = "across",
         .placeholder = "FUNCTION",
         .help = "Combine the series of a metric into one: sum, avg, min, max, p50, p90, p99, "
                 "count, stddev or quantile. By time this reduces to --points (default 60).",
         .choices = FunctionNames()},
        {.name = "quantile",
         .placeholder = "Q",
         .help = "The quantile Q, from 0 to 1, across series; implies --across quantile."},
        {.name = "group-by",
         .placeholder = "LABELS",
         .help =
             "With --across: one series for each value of these labels, like host or task,chip.",
         .repeated = true},
        {.name = "limit",
         .placeholder = "N",
         .help = "Table: show N rows of each series, the first and the last (0: all; default: 40 "
                 "on a terminal, else all). JSON, CSV: stop after N samples."}};
    list->insert(list->end(), more.begin(), more.end());
    list->insert(list->end() - 1, CounterFlags().begin(), CounterFlags().end());
    return list;
  }();
  return *flags;
}

FlagSpec AttemptsFlag(absl::string_view default_value) {
  return {.name = "attempts",
          .placeholder = "WHICH",
          .help = absl::StrCat(
              "For a job that was restarted: effective (for each step, the latest attempt that "
              "reached it), all or latest. Default: ",
              default_value, "."),
          .choices = {"effective", "all", "latest"}};
}

v1::Attempts ParseAttempts(const ParsedArgs& args) {
  const std::optional<std::string> attempts = args.Get("attempts");
  if (!attempts) return v1::ATTEMPTS_UNSPECIFIED;
  return *attempts == "effective" ? v1::ATTEMPTS_EFFECTIVE
         : *attempts == "latest"  ? v1::ATTEMPTS_LATEST
                                  : v1::ATTEMPTS_ALL;
}

const std::vector<FlagSpec>& CounterFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "rate", .help = "For counters: growth per second. By time only."},
      {.name = "increase", .help = "For counters: growth between points. By time only."}};
  return *flags;
}

absl::StatusOr<v1::CounterFunction> ParseCounter(const ParsedArgs& args) {
  if (args.Has("rate") && args.Has("increase")) {
    return absl::InvalidArgumentError("--rate and --increase exclude each other: give one");
  }
  return args.Has("rate")       ? v1::COUNTER_FUNCTION_RATE
         : args.Has("increase") ? v1::COUNTER_FUNCTION_INCREASE
                                : v1::COUNTER_FUNCTION_UNSPECIFIED;
}

FlagSpec StepsFlag() {
  return {.name = "steps",
          .placeholder = "A:B",
          .help = "Only these training steps, both inclusive; A: and :B are open."};
}

absl::StatusOr<std::optional<v1::StepRange>> ParseStepsFlag(const ParsedArgs& args) {
  const std::optional<std::string> steps = args.Get("steps");
  if (!steps) return std::optional<v1::StepRange>();
  const absl::StatusOr<v1::StepRange> range = ParseSteps(*steps);
  if (!range.ok()) return Prefixed("steps", range.status());
  return std::optional<v1::StepRange>(*range);
}

absl::StatusOr<std::optional<uint64_t>> ParseNumber(const ParsedArgs& args, absl::string_view flag,
                                                    uint64_t minimum, uint64_t maximum) {
  const std::optional<std::string> text = args.Get(flag);
  if (!text) return std::optional<uint64_t>();
  uint64_t number = 0;
  if (absl::SimpleAtoi(*text, &number) && number >= minimum && number <= maximum) {
    return std::optional<uint64_t>(number);
  }
  const bool bounded = maximum < std::numeric_limits<uint32_t>::max();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " '", *text, "': expected a whole number, ", minimum, " or more",
                   bounded ? absl::StrCat(", at most ", maximum) : ""));
}

absl::StatusOr<std::optional<v1::TimeRange>> ParseTimeRange(const ParsedArgs& args, absl::Time now,
                                                            absl::TimeZone zone) {
  v1::TimeRange range;
  if (const std::optional<std::string> since = args.Get("since")) {
    if (args.Has("from")) {
      return absl::InvalidArgumentError("--since and --from both set the beginning: give one");
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
      return absl::InvalidArgumentError(
          "--to is not after the beginning: move --to, --from or --since");
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
  TACHO_ASSIGN_OR_RETURN(auto matchers, ParseMatchers(args));
  selector.mutable_matchers()->Assign(matchers.begin(), matchers.end());

  const auto attempt = ParseNumber(args, "attempt", 0, std::numeric_limits<uint32_t>::max());
  const auto points = ParseNumber(args, "points", 1, kMaxPoints);
  const auto limit = ParseNumber(args, "limit", 0, std::numeric_limits<uint64_t>::max());
  for (const absl::Status& status : {attempt.status(), points.status(), limit.status()}) {
    if (!status.ok()) return status;
  }
  if (*attempt) {
    *selector.add_matchers() = *ParseMatcher(absl::StrCat("attempt=", **attempt));
  }
  request.set_max_points(static_cast<uint32_t>(points->value_or(0)));
  request.set_attempts(ParseAttempts(args));
  options.limit = *limit;

  TACHO_ASSIGN_OR_RETURN(auto time, ParseTimeRange(args, now, zone));
  if (time) *request.mutable_time() = *time;
  TACHO_RETURN_IF_ERROR(ParseAxis(args, request));
  TACHO_RETURN_IF_ERROR(ParseAcross(args, request));
  return options;
}

}  // namespace tacho::ctl
