// 'bucket': what an object store keeps of the promises that collectors need. It speaks to the store
// itself and to no collector, so that it can be asked before there is one.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "proto/base/clock.h"
#include "storage/bucket/bucket_options.h"
#include "storage/bucket/bucket_probe.h"

namespace tacho::ctl {
namespace {

using storage::ProbeFinding;
using storage::ProbeReport;

struct Probed {
  std::string url;
  ProbeReport report;
  absl::Duration took;
};

storage::BucketOptions OptionsOf(const Invocation& invocation) {
  storage::BucketOptions options;
  options.url = invocation.Positional(1);
  options.endpoint = invocation.args.Get("endpoint").value_or("");
  options.region = invocation.args.Get("region").value_or("");
  options.path_style = invocation.args.Has("path-style");
  options.credentials = invocation.args.Get("credentials").value_or("auto");
  options.ca_file = invocation.args.Get("ca-file").value_or("");
  options.timeout = std::min(options.timeout, invocation.common.timeout);
  return options;
}

void PrintTable(const Environment& env, const Probed& probed) {
  Table table({{.heading = "CHECK"}, {.heading = "RESULT"}, {.heading = "SEEN"}});
  for (const ProbeFinding& finding : probed.report.findings) {
    table.AddRow({finding.name, NameOf(finding.result), finding.detail});
  }
  table.Print(*env.out, env.width, env.unicode);
  for (const std::string& line : Wrap(Printable(probed.report.verdict), env.width)) {
    *env.out << line << '\n';
  }
}

void PrintJson(const Environment& env, const Probed& probed) {
  JsonWriter json(*env.out);
  json.Object([&] {
    json.Field("url", probed.url);
    json.Field("fit_to_share", probed.report.fit_to_share);
    json.Field("fit_for_history", probed.report.fit_for_history);
    json.Field("quote_tags", probed.report.quote_tags);
    json.Field("verdict", probed.report.verdict);
    json.Field("seconds", absl::ToDoubleSeconds(probed.took));
    json.Objects("findings", probed.report.findings, [&](const ProbeFinding& finding) {
      json.Field("name", finding.name);
      json.Field("result", NameOf(finding.result));
      json.Field("detail", finding.detail);
    });
  });
}

void PrintCsv(const Environment& env, const Probed& probed) {
  *env.out << CsvLine({"name", "result", "detail"});
  for (const ProbeFinding& finding : probed.report.findings) {
    *env.out << CsvLine({finding.name, NameOf(finding.result), finding.detail});
  }
}

int Fail(const Environment& env, const std::string& url, const absl::Status& status) {
  *env.err << "tachoctl: cannot probe " << Printable(url) << ": " << Printable(status.message())
           << "\n";
  return absl::IsUnavailable(status) ? kUnreachable : kNothing;
}

int RunBucket(const Invocation& invocation) {
  if (invocation.Positional(0) != "probe") {
    return UsageError(invocation.env, "bucket",
                      absl::StrCat("no action '", invocation.Positional(0),
                                   "': expected probe. To check what is in a bucket, or to "
                                   "restore from it, see tacho-collector --help"));
  }
  const storage::BucketOptions options = OptionsOf(invocation);
  const auto bucket = storage::OpenBucket(options);
  if (!bucket.ok()) {
    return UsageError(invocation.env, "bucket", std::string(bucket.status().message()));
  }
  const absl::Time begun = MonotonicNow();
  auto report = storage::ProbeBucket(**bucket);
  if (!report.ok()) return Fail(invocation.env, options.url, report.status());
  const Probed probed{options.url, *std::move(report), MonotonicNow() - begun};
  switch (invocation.common.format) {
    case Format::kJson:
      PrintJson(invocation.env, probed);
      break;
    case Format::kCsv:
      PrintCsv(invocation.env, probed);
      break;
    case Format::kTable:
      PrintTable(invocation.env, probed);
      break;
  }
  return probed.report.fit_to_share ? kOk : kThreshold;
}

}  // namespace

Command BucketCommand() {
  return {
      .name = "bucket",
      .group = CommandGroup::kOperate,
      .operands = "probe URL",
      .summary = "Check whether collectors can share a bucket of an object store",
      .details =
          R"(Object stores differ in what they promise, and some ignore a condition without saying so. The probe
finds out: eight connections create one key together, then replace it together, and one must win
each time. It sends about 140 requests, writes some small objects below probe/ and deletes them.
It asks the store itself; no collector has to run.

URL is s3://BUCKET/PREFIX for AWS, Ceph and others, gs://BUCKET/PREFIX for Google Cloud Storage.

Credentials: auto takes the first that is configured of AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, a web identity (AWS_ROLE_ARN), the shared files of AWS (AWS_PROFILE), a
container's endpoint, and the instance's metadata; for gs:// an HMAC key in AWS_ACCESS_KEY_ID, or
the metadata server's token. docs/bucket.md describes each.

The exit code is 0 if collectors may share the bucket, 4 if not, 3 if nobody answered, and 1 if
nothing can be written there.

Examples:
  tachoctl bucket probe s3://tacho-prod/fleet-a --region eu-central-1
  tachoctl bucket probe s3://tacho --endpoint http://ceph:7480 --path-style
  tachoctl bucket probe gs://tacho-prod -o json | jq -r .verdict

JSON: {"url", "fit_to_share", "fit_for_history", "quote_tags", "verdict", "seconds",
  "findings": [{"name", "result": "pass"|"fail"|"unknown", "detail"}]}.)",
      .flags = {{.name = "endpoint",
                 .placeholder = "URL",
                 .help = "http://HOST:PORT or https://HOST:PORT. Default: AWS' in the region, or "
                         "Google's."},
                {.name = "region",
                 .placeholder = "NAME",
                 .help = "Default: AWS_REGION, AWS_DEFAULT_REGION, else us-east-1."},
                {.name = "path-style",
                 .help = "The bucket's name stands in the path, as most Cephs want it."},
                {.name = "credentials",
                 .placeholder = "SOURCE",
                 .help = "auto, environment, file:PATH, web_identity, container or instance. "
                         "Default: auto."},
                {.name = "ca-file",
                 .placeholder = "FILE",
                 .help = "Authorities of the store's certificate, PEM. Default: the system's."}},
      .min_operands = 2,
      .max_operands = 2,
      .run = RunBucket};
}

}  // namespace tacho::ctl
