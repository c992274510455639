// 'goodput': where the wall time of a job went, in the three formats.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

using Kind = RecordColumn::Kind;

constexpr size_t kBarWidth = 32;
constexpr uint64_t kMostSpans = 10'000;  // The collector's limit.
constexpr int kMostLosingHosts = 10;
// Less is not worth a table; the JSON has it.
constexpr double kLeastLossPercent = 0.1;

// "productive_step"; the number of a bucket that only a newer collector knows.
std::string NameOf(v1::GoodputBucket bucket) {
  constexpr absl::string_view kPrefix = "GOODPUT_BUCKET_";
  const std::string& name = v1::GoodputBucket_Name(bucket);
  if (name.size() <= kPrefix.size()) return absl::StrCat(static_cast<int>(bucket));
  return absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

// "input"; the number of a reason that only a newer collector knows.
std::string NameOf(v1::LossReason reason) {
  constexpr absl::string_view kPrefix = "LOSS_REASON_";
  const std::string& name = v1::LossReason_Name(reason);
  if (name.size() <= kPrefix.size()) return absl::StrCat(static_cast<int>(reason));
  return absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

double SecondsOf(int64_t ns) { return static_cast<double>(ns) / 1e9; }

double PercentOf(const v1::Goodput& goodput, int64_t ns) {
  if (goodput.wall_ns() <= 0) return 0;
  return 100 * static_cast<double>(ns) / static_cast<double>(goodput.wall_ns());
}

int64_t TimeIn(const v1::Goodput& goodput, v1::GoodputBucket wanted) {
  for (const v1::BucketTime& bucket : goodput.buckets()) {
    if (bucket.bucket() == wanted) return bucket.ns();
  }
  return 0;
}

// A share that is printed as 0.0 % gets no bar. One that is too small for a block gets a thin bar.
std::string Bar(double percent, bool unicode) {
  const double share = std::clamp(percent / 100, 0.0, 1.0);
  const auto cells = static_cast<size_t>(std::lround(share * static_cast<double>(kBarWidth)));
  if (cells == 0 && percent >= 0.05) return unicode ? "▏" : "|";
  std::string bar;
  for (size_t i = 0; i < cells; ++i) bar += unicode ? "█" : "#";
  return bar;
}

std::string Time(int64_t ns) { return ReadableDuration(absl::Nanoseconds(ns)); }

void PrintBuckets(const Invocation& invocation, const v1::Goodput& total) {
  Table table({{"BUCKET"}, {"TIME", Align::kRight}, {"%", Align::kRight}, {""}});
  for (const v1::BucketTime& bucket : total.buckets()) {
    const double percent = PercentOf(total, bucket.ns());
    table.AddRow({NameOf(bucket.bucket()), bucket.ns() == 0 ? "-" : Time(bucket.ns()),
                  ShareNumber(percent / 100), Bar(percent, invocation.env.unicode)});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
}

void PrintAttempts(const Invocation& invocation, const v1::GoodputResponse& answer) {
  if (answer.attempts_size() < 2) return;
  *invocation.env.out << "\n";
  Table table({{"ATTEMPT", Align::kRight},
               {absl::StrCat("BEGAN (", ZoneName(invocation.env.now, invocation.env.zone), ")")},
               {"WALL", Align::kRight},
               {"GOODPUT %", Align::kRight},
               {"WASTED", Align::kRight},
               {"STEPS", Align::kRight}});
  for (const v1::AttemptGoodput& attempt : answer.attempts()) {
    const v1::Goodput& goodput = attempt.goodput();
    const int64_t wasted = TimeIn(goodput, v1::GOODPUT_BUCKET_WASTED);
    table.AddRow({absl::StrCat(attempt.attempt()),
                  ReadableTime(goodput.begin_unix_ns(), invocation.env.zone),
                  Time(goodput.wall_ns()), ShareNumber(goodput.goodput_ratio()),
                  wasted == 0 ? "-" : Time(wasted), Thousands(goodput.productive_steps())});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
}

std::string Seconds(double seconds) { return absl::StrCat(ReadableNumber(seconds), " s"); }

void PrintSteps(const Invocation& invocation, const v1::StepFigures& steps) {
  Table table({{""}, {""}});
  const auto add = [&](const char* name, bool known, const std::string& value) {
    if (known) table.AddRow({name, value});
  };
  add("step time", steps.has_step_time_median_seconds(),
      absl::StrCat("median ", Seconds(steps.step_time_median_seconds()), ", p90 ",
                   Seconds(steps.step_time_p90_seconds()), ", p99 ",
                   Seconds(steps.step_time_p99_seconds()), ", ideal ",
                   Seconds(steps.step_time_ideal_seconds())));
  add("MFU", steps.has_mfu_ratio(),
      absl::StrFormat("%s of %s TFLOP/s a device (%s)", ShareText(steps.mfu_ratio()),
                      ReadableNumber(steps.device_peak_flops() / 1e12),
                      steps.device_peak_source()));
  add("tokens a second", steps.has_tokens_per_second(), ReadableNumber(steps.tokens_per_second()));
  add("progress", steps.has_progress_ratio(),
      absl::StrFormat("step %s of %s, %s",
                      Thousands(static_cast<uint64_t>(std::max<int64_t>(0, steps.last_step()))),
                      Thousands(static_cast<uint64_t>(std::max<int64_t>(0, steps.planned_steps()))),
                      ShareText(steps.progress_ratio())));
  add("time left", steps.has_remaining_seconds(),
      absl::StrCat("about ",
                   ReadableDuration(absl::Seconds(std::floor(steps.remaining_seconds())))));
  // The empty headings print an empty line before the table.
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
}

// "input 1m 20s, compute 4s".
std::string ReasonsText(const v1::HostLoss& host) {
  std::string text;
  for (const v1::ReasonLoss& one : host.reasons()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", NameOf(one.reason()), " ", Time(one.ns()));
  }
  return text;
}

void PrintLosses(const Invocation& invocation, const v1::GoodputResponse& answer) {
  if (!answer.has_losses()) return;
  const v1::HostLosses& losses = answer.losses();
  const double percent = PercentOf(answer.total(), losses.lost_ns());
  if (percent < kLeastLossPercent) return;
  *invocation.env.out << "\nTasks waited " << Time(losses.lost_ns()) << " ("
                      << ShareText(percent / 100) << ") for slow hosts:\n";
  Table table({{"HOST"}, {"LOST", Align::kRight}, {"%", Align::kRight}, {"BY"}});
  const int shown = std::min(losses.hosts_size(), kMostLosingHosts);
  for (int i = 0; i < shown; ++i) {
    const v1::HostLoss& host = losses.hosts(i);
    table.AddRow({host.host(), Time(host.lost_ns()),
                  ShareNumber(PercentOf(answer.total(), host.lost_ns()) / 100), ReasonsText(host)});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
  if (shown == losses.hosts_size()) return;
  *invocation.env.out << Count(static_cast<uint64_t>(losses.hosts_size() - shown), "more host")
                      << " in -o json.\n";
}

// "51..99"; "-": there are none.
std::string StepsOf(const v1::LedgerSpan& span) {
  if (!span.has_first_step()) return "-";
  return absl::StrCat(span.first_step(), "..", span.last_step());
}

// `most` is how many spans were asked for.
void PrintSpans(const Invocation& invocation, const v1::GoodputResponse& answer, uint64_t most) {
  if (answer.spans().empty()) return;
  *invocation.env.out << "\n";
  Table table({{absl::StrCat("BEGAN (", ZoneName(invocation.env.now, invocation.env.zone), ")")},
               {"TIME", Align::kRight},
               {"BUCKET"},
               {"ATTEMPT", Align::kRight},
               {"STEPS", Align::kRight}});
  for (const v1::LedgerSpan& span : answer.spans()) {
    table.AddRow({ReadableTime(span.begin_unix_ns(), invocation.env.zone),
                  Time(span.end_unix_ns() - span.begin_unix_ns()), NameOf(span.bucket()),
                  absl::StrCat(span.attempt()), StepsOf(span)});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
  if (answer.spans_joined() == 0) return;
  *invocation.env.out << "\n"
                      << Count(answer.spans_joined(), "shorter span")
                      << (answer.spans_joined() == 1 ? " is" : " are") << " part of a neighbour"
                      << (most < kMostSpans ? ": a larger --spans shows more.\n" : ".\n");
}

void PrintTable(const Invocation& invocation, const v1::GoodputResponse& answer,
                uint64_t most_spans) {
  const v1::Goodput& total = answer.total();
  *invocation.env.out << Printable(answer.job()) << ": " << Time(total.wall_ns())
                      << " of wall time";
  if (answer.attempts_size() > 1) {
    *invocation.env.out << " in " << answer.attempts_size() << " attempts";
  }
  *invocation.env.out << absl::StrCat(", ", ShareText(total.goodput_ratio()), " productive\n\n");
  PrintBuckets(invocation, total);
  PrintAttempts(invocation, answer);
  PrintLosses(invocation, answer);
  if (answer.has_steps()) PrintSteps(invocation, answer.steps());
  if (answer.step_metric().empty()) {
    *invocation.env.out << "\nNo step has been recorded, so productive time is not known.\n";
  }
  PrintSpans(invocation, answer, most_spans);
}

void WriteJson(const v1::Goodput& goodput, JsonWriter* json) {
  json->TimeFields("begin", Maybe(goodput.begin_unix_ns() != 0, goodput.begin_unix_ns()));
  json->TimeFields("end", Maybe(goodput.end_unix_ns() != 0, goodput.end_unix_ns()));
  json->Field("wall_seconds", SecondsOf(goodput.wall_ns()));
  json->Field("goodput_ratio", Maybe(goodput.has_goodput_ratio(), goodput.goodput_ratio()));
  json->Object("seconds", [&] {
    for (const v1::BucketTime& bucket : goodput.buckets()) {
      json->Field(NameOf(bucket.bucket()), SecondsOf(bucket.ns()));
    }
  });
  json->Field("productive_steps", goodput.productive_steps());
  json->Field("wasted_steps", goodput.wasted_steps());
  json->Field("rewinds", goodput.rewinds());
}

void WriteJson(const v1::StepFigures& steps, JsonWriter* json) {
  json->Field("sampled", steps.sampled());
  const auto number = [&](const char* name, bool known, double value) {
    json->Field(name, Maybe(known, value));
  };
  number("step_time_median_seconds", steps.has_step_time_median_seconds(),
         steps.step_time_median_seconds());
  number("step_time_p90_seconds", steps.has_step_time_p90_seconds(), steps.step_time_p90_seconds());
  number("step_time_p99_seconds", steps.has_step_time_p99_seconds(), steps.step_time_p99_seconds());
  number("step_time_mean_seconds", steps.has_step_time_mean_seconds(),
         steps.step_time_mean_seconds());
  number("step_time_mad_seconds", steps.has_step_time_mad_seconds(), steps.step_time_mad_seconds());
  number("step_time_ideal_seconds", steps.has_step_time_ideal_seconds(),
         steps.step_time_ideal_seconds());
  number("mfu_ratio", steps.has_mfu_ratio(), steps.mfu_ratio());
  number("device_peak_flops", steps.has_device_peak_flops(), steps.device_peak_flops());
  json->Field("device_peak_source", steps.device_peak_source());
  number("tokens_per_second", steps.has_tokens_per_second(), steps.tokens_per_second());
  json->Field("last_step", Maybe(steps.has_last_step(), steps.last_step()));
  json->Field("planned_steps", Maybe(steps.has_planned_steps(), steps.planned_steps()));
  number("progress_ratio", steps.has_progress_ratio(), steps.progress_ratio());
  number("remaining_seconds", steps.has_remaining_seconds(), steps.remaining_seconds());
}

void WriteJson(const v1::LedgerSpan& span, JsonWriter* json) {
  json->Field("bucket", NameOf(span.bucket()));
  json->TimeFields("begin", span.begin_unix_ns());
  json->TimeFields("end", span.end_unix_ns());
  json->Field("attempt", span.attempt());
  json->Field("first_step", Maybe(span.has_first_step(), span.first_step()));
  json->Field("last_step", Maybe(span.has_last_step(), span.last_step()));
}

void WriteJson(const v1::HostLosses& losses, JsonWriter* json) {
  json->Field("lost_seconds", SecondsOf(losses.lost_ns()));
  json->Field("judged_steps", losses.judged_steps());
  json->Objects("hosts", losses.hosts(), [&](const v1::HostLoss& host) {
    json->Field("host", host.host());
    json->Field("lost_seconds", SecondsOf(host.lost_ns()));
    json->Object("seconds", [&] {
      for (const v1::ReasonLoss& one : host.reasons()) {
        json->Field(NameOf(one.reason()), SecondsOf(one.ns()));
      }
    });
  });
}

void PrintJson(const Invocation& invocation, const v1::GoodputResponse& answer, bool spans) {
  JsonWriter json(*invocation.env.out);
  json.Object([&] {
    json.Field("job", answer.job());
    json.Object("total", [&] { WriteJson(answer.total(), &json); });
    json.Objects("attempts", answer.attempts(), [&](const v1::AttemptGoodput& attempt) {
      json.Field("attempt", attempt.attempt());
      WriteJson(attempt.goodput(), &json);
    });
    json.Key("losses");
    if (answer.has_losses()) {
      json.Object([&] { WriteJson(answer.losses(), &json); });
    } else {
      json.Null();
    }
    if (spans) {
      json.Objects("spans", answer.spans(),
                   [&](const v1::LedgerSpan& span) { WriteJson(span, &json); });
      json.Field("spans_joined", answer.spans_joined());
    }
    json.Key("steps");
    if (!answer.has_steps()) return json.Null();
    json.Object([&] {
      json.Field("attempt", answer.attempt());
      json.Field("metric", answer.step_metric());
      WriteJson(answer.steps(), &json);
    });
  });
  *invocation.env.out << "\n";
}

void PrintCsv(const Invocation& invocation, const v1::GoodputResponse& answer) {
  RecordWriter writer(invocation, "goodput",
                      {{"attempt", "ATTEMPT", Kind::kNumber},
                       {"bucket", "BUCKET", Kind::kText},
                       {"seconds", "SECONDS", Kind::kNumber},
                       {"percent", "%", Kind::kNumber}});
  const auto write = [&](const Cell& attempt, const v1::Goodput& goodput) {
    for (const v1::BucketTime& bucket : goodput.buckets()) {
      writer.Row({attempt, NameOf(bucket.bucket()), SecondsOf(bucket.ns()),
                  PercentOf(goodput, bucket.ns())});
    }
  };
  write(Cell(), answer.total());
  for (const auto& attempt : answer.attempts()) {
    write(Cell(uint64_t{attempt.attempt()}), attempt.goodput());
  }
  writer.Finish();
}

void PrintSpansCsv(const Invocation& invocation, const v1::GoodputResponse& answer) {
  RecordWriter writer(invocation, "spans",
                      {{"begin", "BEGIN", Kind::kTime},
                       {"end", "END", Kind::kTime},
                       {"seconds", "SECONDS", Kind::kNumber},
                       {"bucket", "BUCKET", Kind::kText},
                       {"attempt", "ATTEMPT", Kind::kNumber},
                       {"first_step", "FIRST STEP", Kind::kNumber},
                       {"last_step", "LAST STEP", Kind::kNumber}});
  for (const v1::LedgerSpan& span : answer.spans()) {
    const bool steps = span.has_first_step();
    writer.Row({UnixNs{span.begin_unix_ns()}, UnixNs{span.end_unix_ns()},
                SecondsOf(span.end_unix_ns() - span.begin_unix_ns()), NameOf(span.bucket()),
                uint64_t{span.attempt()}, steps ? Cell(span.first_step()) : Cell(),
                steps ? Cell(span.last_step()) : Cell()});
  }
  writer.Finish();
}

int RunGoodput(const Invocation& invocation) {
  const auto spans = ParseNumber(invocation.args, "spans", 1, kMostSpans);
  if (!spans.ok()) {
    return UsageError(invocation.env, "goodput", std::string(spans.status().message()));
  }
  v1::GoodputRequest request;
  request.set_job(invocation.Positional(0));
  request.set_max_spans(static_cast<uint32_t>(spans->value_or(0)));
  QueryClient client = Connect(invocation);
  const auto answer = client.Goodput(request);
  if (!answer.ok()) return JobCallError(invocation, client, request.job(), answer.status());
  switch (invocation.common.format) {
    case Format::kTable:
      PrintTable(invocation, *answer, request.max_spans());
      break;
    case Format::kJson:
      PrintJson(invocation, *answer, spans->has_value());
      break;
    case Format::kCsv:
      spans->has_value() ? PrintSpansCsv(invocation, *answer) : PrintCsv(invocation, *answer);
      break;
  }
  return kOk;
}

}  // namespace

Command GoodputCommand() {
  return {
      .name = "goodput",
      .group = CommandGroup::kHistory,
      .operands = "JOB",
      .summary = "Show where the wall time of a job went, its MFU and its step times",
      .details =
          R"(Every second since the first attempt began belongs to exactly one bucket: productive_step,
initializing, compiling, restoring, data_wait, checkpoint, evaluation, wasted (steps that a restart
ran again), stalled, down (between attempts), other, waiting_for_others (within steps, because a host
was slow). docs/goodput.md defines them, and MFU, tokens a second, ideal step time and time left.
Time counts once its bucket is decided: the step in progress is not included.

If the tasks record their own work, it also says for which hosts the others waited, for how long,
and in what those were slow: input, compute, communication or checkpoint. In the buckets that time
is waiting_for_others, unless the task of the ledger was slow itself.

With --spans it also lists the spans of the ledger, oldest first: when each began, how long it took,
its bucket and its steps. If there are more spans than N, the shortest become part of a neighbour.

Examples:
  tachoctl goodput bert-base
  tachoctl goodput bert-base --spans 50
  tachoctl goodput bert-base -o json | jq .total.seconds.wasted

JSON: {"job", "total": {"begin", "begin_unix_ns", "end", "end_unix_ns", "wall_seconds",
  "goodput_ratio" or null, "seconds": {BUCKET: number}, "productive_steps", "wasted_steps",
  "rewinds"}, "attempts": [{"attempt", …as total}], "steps": null or {"attempt", "metric",
  "sampled", "step_time_{median,p90,p99,mean,mad,ideal}_seconds", "mfu_ratio",
  "device_peak_flops", "device_peak_source", "tokens_per_second", "last_step", "planned_steps",
  "progress_ratio", "remaining_seconds"; null where nothing is recorded}, "losses": null or {"lost_seconds",
  "judged_steps", "hosts": [{"host", "lost_seconds", "seconds": {REASON: number}}]}}; with --spans
  also "spans":
  [{"bucket", "begin", "begin_unix_ns", "end", "end_unix_ns", "attempt", "first_step" or null,
  "last_step" or null}] and "spans_joined"
CSV: attempt (empty: the job), bucket, seconds, percent; with --spans the spans instead.)",
      .flags = {{.name = "spans",
                 .placeholder = "N",
                 .help = "Also list the ledger as at most N spans, oldest first."}},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunGoodput};
}

}  // namespace tacho::ctl
