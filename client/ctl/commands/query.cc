#include <algorithm>
#include <set>

#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/integrate.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/sample_sink.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

std::unique_ptr<SampleSink> MakeSink(const Invocation& invocation, const QueryOptions& options) {
  switch (invocation.common.format) {
    case Format::kJson:
      return MakeJsonSink(*invocation.env.out, options);
    case Format::kCsv:
      return MakeCsvSink(*invocation.env.out, options);
    case Format::kTable:
      break;
  }
  return MakeTableSink(invocation.env, options);
}

// Hands one answer after the other to the sink.
class Feeder {
 public:
  Feeder(const QueryOptions& options, SampleSink& sink)
      : reduced_(options.reduced()), sink_(sink) {}

  // False: stop reading, because the sink has enough or `status()` is bad.
  bool Feed(const v1::RangeResponse& response) {
    status_ = CheckColumns(response);
    if (!status_.ok()) return false;
    if (response.has_series()) {
      sink_.Begin(response.series(), response.bucket_width());
      metrics_.insert(response.series().metric().name());
      in_series_ = true;
    }
    if (!in_series_ || (response.has_buckets() && !reduced_)) {
      status_ = absl::InternalError(
          "the collector's answer does not match the request: check that its version fits this "
          "tachoctl");
      return false;
    }
    return FeedPoints(response.points()) && FeedBuckets(response.buckets());
  }

  const absl::Status& status() const { return status_; }
  // Metrics that had a series in the answer.
  const std::set<std::string>& metrics() const { return metrics_; }

 private:
  bool FeedPoints(const v1::Points& points) {
    for (int i = 0; i < points.times_unix_ns_size(); ++i) {
      const Point point = PointAt(points, i);
      if (!(reduced_ ? sink_.Add(BucketOf(point)) : sink_.Add(point))) return false;
    }
    return true;
  }

  bool FeedBuckets(const v1::Buckets& buckets) {
    for (int i = 0; i < buckets.first_times_unix_ns_size(); ++i) {
      if (!sink_.Add(BucketAt(buckets, i))) return false;
    }
    return true;
  }

  const bool reduced_;
  SampleSink& sink_;
  bool in_series_ = false;
  absl::Status status_;
  std::set<std::string> metrics_;
};

// The metrics asked for that the answer did not have; none if all were asked for.
std::vector<std::string> Missing(const v1::Selector& selector, const std::set<std::string>& found) {
  std::vector<std::string> missing;
  for (const std::string& metric : selector.metrics()) {
    if (found.count(metric) == 0) missing.push_back(metric);
  }
  return missing;
}

std::vector<FlagSpec> AllFlags() {
  std::vector<FlagSpec> flags = QueryFlags();
  flags.insert(flags.end() - 1, IntegrateFlags().begin(), IntegrateFlags().end());
  return flags;
}

int RunQuery(const Invocation& invocation) {
  const Environment& env = invocation.env;
  if (invocation.args.Has("integrate")) return RunIntegrate(invocation);
  if (invocation.args.Has("max-gap")) {
    return UsageError(env, "query", "--max-gap needs --integrate");
  }
  const auto options = ParseQueryOptions(invocation.args, env.now, env.zone);
  if (!options.ok()) {
    return UsageError(env, "query", std::string(options.status().message()));
  }
  const v1::Selector& selector = options->request.selector();
  const std::unique_ptr<SampleSink> sink = MakeSink(invocation, *options);
  Feeder feeder(*options, *sink);
  QueryClient client = Connect(invocation);
  bool stopped = false;
  absl::Status status = client.Range(options->request, [&](const v1::RangeResponse& response) {
    stopped = !feeder.Feed(response);
    env.out->flush();
    return !stopped && env.out->good();
  });
  status.Update(feeder.status());
  sink->Finish(status);
  if (!status.ok()) {
    env.out->flush();
    return SelectorCallError(invocation, client, selector, status);
  }
  const std::vector<std::string> missing = Missing(selector, feeder.metrics());
  const bool explained = !stopped && !missing.empty() &&
                         ReportUnknownMetrics(invocation, client, selector.job(), missing);
  if (!feeder.metrics().empty()) return kOk;
  if (!explained) {
    *env.err << "tachoctl: no samples match; widen --since, --steps or --match\n";
  }
  return kNothing;
}

}  // namespace

Command QueryCommand() {
  return {.name = "query",
          .group = CommandGroup::kHistory,
          .operands = "JOB METRIC...",
          .summary = "Show samples of a job's metrics, raw or reduced, by time or by step",
          .details = R"(Examples:
  tachoctl query bert-base loss                          every sample of every task
  tachoctl query bert-base loss -m task=0 --since 1h     the last hour of one task
  tachoctl query bert-base loss grad_norm --steps 40000:42000 --attempt 1
  tachoctl query bert-base loss --points 40              an overview with min, avg and max
  tachoctl query bert-base step_time_seconds --across p99 --by step --steps 1000:
  tachoctl query bert-base host_cpu_ratio --across max --group-by host --points 60
  tachoctl query bert-base chip_power_watts --integrate --across sum      its energy
  tachoctl query bert-base loss --from 2026-01-31 --to '2026-02-01 06:00' --utc -o csv > loss.csv

Times without a zone are local time, or UTC with --utc. Tables show times the same way.

JSON: {"job", "axis": "time"|"step", "reduced": bool, "series": [{"metric", "type", "unit",
  "task" or null, "host", "labels": {}, "samples": [...]}], "error": null or why the answer is incomplete}
  a sample: {"time", "time_unix_ns", "step" or null, "attempt", "value"}
  with --points: {"first_time", "first_time_unix_ns", "last_time", "last_time_unix_ns",
  "first_step", "last_step", "min", "max", "avg", "first", "last", "count", "non_finite"}, and each
  series has "bucket_width": the width of its points, ns or steps; gaps that are long have no point
  with --integrate: {"integrals": [{"metric", "task" or null, "host", "labels": {}, "value", "unit",
  "kilowatt_hours" or null, "covered_seconds", "not_covered_seconds", "gaps", "series", "count",
  "non_finite", "first_time", "first_time_unix_ns", "last_time", "last_time_unix_ns"}]}
CSV: the same fields, one line a sample, with job, metric, task, host and labels in front.
Values in JSON and CSV read back bit for bit; NaN and infinities are written as NaN, Infinity and
-Infinity (strings in JSON). min, max and avg cover the finite samples; non_finite counts the others.)",
          .flags = AllFlags(),
          .min_operands = 2,
          .max_operands = kAnyNumber,
          .run = RunQuery};
}

}  // namespace tacho::ctl
