// 'forecast': when a job will end, and its loss then, in the three formats.
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/insight/insight.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

// "in 3h 20m, at 2026-11-26 12:00:00".
std::string WhenText(const Invocation& invocation, int64_t unix_ns) {
  const absl::Duration left = absl::FromUnixNanos(unix_ns) - invocation.env.now;
  std::string at = ReadableTime(unix_ns, invocation.env.zone);
  if (left <= absl::ZeroDuration()) return at;
  return absl::StrCat(at, ", in ", ReadableDuration(absl::Floor(left, absl::Seconds(1))));
}

std::string TaskText(const v1::ValueForecast& value) {
  return value.has_task() ? absl::StrCat(" of task ", value.task()) : "";
}

std::string StepText(int64_t step) { return absl::StrCat(step); }

void PrintTable(const Invocation& invocation, const v1::ForecastResponse& answer) {
  std::ostream& out = *invocation.env.out;
  out << Printable(answer.job());
  if (answer.has_newest_step()) out << ": step " << StepText(answer.newest_step());
  if (answer.has_last_step()) out << " of " << StepText(answer.last_step());
  const std::string share = ShareText(answer.band_share());
  out << "\n\nend    ";
  if (answer.has_end()) {
    out << WhenText(invocation, answer.end().likely_unix_ns()) << " ("
        << ZoneName(invocation.env.now, invocation.env.zone) << ")\n       with " << share
        << " probability between "
        << ReadableTime(answer.end().earliest_unix_ns(), invocation.env.zone) << " and "
        << ReadableTime(answer.end().latest_unix_ns(), invocation.env.zone) << "\n";
  } else {
    out << "not known: " << Printable(answer.no_end()) << "\n";
  }
  out << "value  ";
  if (answer.has_value()) {
    const v1::ValueForecast& value = answer.value();
    out << Printable(value.metric()) << TaskText(value) << ": " << ReadableNumber(value.likely())
        << ", now " << ReadableNumber(value.now()) << "\n       with " << share
        << " probability between " << ReadableNumber(value.low()) << " and "
        << ReadableNumber(value.high()) << "\n";
  } else {
    out << "not known: " << Printable(answer.no_value()) << "\n";
  }
}

void PrintJson(const Invocation& invocation, const v1::ForecastResponse& answer) {
  JsonWriter json(*invocation.env.out);
  json.Object([&] {
    json.Field("job", answer.job());
    json.Field("band_share", answer.band_share());
    json.Field("newest_step", Maybe(answer.has_newest_step(), answer.newest_step()));
    json.Field("last_step", Maybe(answer.has_last_step(), answer.last_step()));
    json.Key("end");
    if (answer.has_end()) {
      json.Object([&] {
        json.TimeFields("likely", answer.end().likely_unix_ns());
        json.TimeFields("earliest", answer.end().earliest_unix_ns());
        json.TimeFields("latest", answer.end().latest_unix_ns());
      });
    } else {
      json.Null();
    }
    json.Field("no_end", Maybe(!answer.has_end(), answer.no_end()));
    json.Key("value");
    if (answer.has_value()) {
      const v1::ValueForecast& value = answer.value();
      json.Object([&] {
        json.Field("metric", value.metric());
        json.Field("task", Maybe(value.has_task(), uint64_t{value.task()}));
        json.Field("likely", value.likely());
        json.Field("low", value.low());
        json.Field("high", value.high());
        json.Field("now", value.now());
      });
    } else {
      json.Null();
    }
    json.Field("no_value", Maybe(!answer.has_value(), answer.no_value()));
  });
  *invocation.env.out << "\n";
}

void PrintCsv(const Invocation& invocation, const v1::ForecastResponse& answer) {
  RecordWriter writer(invocation, "forecast",
                      {{"end_likely", "END", Kind::kTime},
                       {"end_earliest", "EARLIEST", Kind::kTime},
                       {"end_latest", "LATEST", Kind::kTime},
                       {"metric", "METRIC", Kind::kText},
                       {"likely", "LIKELY", Kind::kNumber},
                       {"low", "LOW", Kind::kNumber},
                       {"high", "HIGH", Kind::kNumber},
                       {"now", "NOW", Kind::kNumber}});
  const auto time = [&](int64_t unix_ns) {
    return answer.has_end() ? Cell(UnixNs{unix_ns}) : Cell();
  };
  const auto number = [&](double value) { return answer.has_value() ? Cell(value) : Cell(); };
  writer.Row({time(answer.end().likely_unix_ns()), time(answer.end().earliest_unix_ns()),
              time(answer.end().latest_unix_ns()), answer.value().metric(),
              number(answer.value().likely()), number(answer.value().low()),
              number(answer.value().high()), number(answer.value().now())});
  writer.Finish();
}

int RunForecast(const Invocation& invocation) {
  const auto step = ParseNumber(invocation.args, "last-step", 0,
                                static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!step.ok()) {
    return UsageError(invocation.env, "forecast", std::string(step.status().message()));
  }
  v1::ForecastRequest request;
  request.set_job(invocation.Positional(0));
  request.set_metric(invocation.args.Get("metric").value_or(""));
  if (step->has_value()) request.set_last_step(static_cast<int64_t>(**step));
  QueryClient client = Connect(invocation);
  const auto answer = client.Forecast(request);
  if (!answer.ok()) return JobCallError(invocation, client, request.job(), answer.status());
  switch (invocation.common.format) {
    case Format::kTable:
      PrintTable(invocation, *answer);
      break;
    case Format::kJson:
      PrintJson(invocation, *answer);
      break;
    case Format::kCsv:
      PrintCsv(invocation, *answer);
      break;
  }
  return kOk;
}

}  // namespace

Command ForecastCommand() {
  return {
      .name = "forecast",
      .group = CommandGroup::kHistory,
      .operands = "JOB",
      .summary = "Show when a job will end, and what its loss will be then",
      .details =
          R"(Both come with a band that holds the truth with a probability of about 80 %. The end is made
from how fast the job got further so far, with its checkpoints, restarts and time down. The value is
the mean of the metric over the last twentieth of the steps: curves are fitted to the metric so far,
and tried on its own past. A schedule that will change, such as a drop of the learning rate, cannot
be known from the past. docs/forecast.md says how often the bands held for recorded runs.

The last step comes from the attribute planned_steps, or from --last-step.

Examples:
  tachoctl forecast bert-base
  tachoctl forecast bert-base --metric eval_loss --last-step 100000
  tachoctl forecast bert-base -o json | jq .end.latest

JSON: {"job", "band_share", "newest_step" or null, "last_step" or null, "end": null or {"likely",
  "likely_unix_ns", "earliest", "earliest_unix_ns", "latest", "latest_unix_ns"}, "no_end": null or
  what is missing, "value": null or {"metric", "task" or null, "likely", "low", "high", "now"},
  "no_value": null or what is missing}
CSV: end_likely, end_earliest, end_latest, metric, likely, low, high, now.)",
      .flags = {{.name = "metric",
                 .placeholder = "NAME",
                 .help = "The metric whose value is wanted. Default: the job's loss."},
                {.name = "last-step",
                 .placeholder = "STEP",
                 .help = "The last step of the job. Default: by the attribute planned_steps."}},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunForecast};
}

}  // namespace tacho::ctl
