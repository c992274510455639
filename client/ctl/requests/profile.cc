// 'profile': has the trainers of a job write down what they do for some time.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/requests/request_flags.h"
#include "client/ctl/requests/requests.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr absl::Duration kProfileLength = absl::Seconds(2);

absl::StatusOr<v1::TakeProfilesRequest> ParseProfileRequest(const Invocation& invocation) {
  v1::TakeProfilesRequest request;
  request.set_job(invocation.Positional(0));
  TACHO_RETURN_IF_ERROR(AddTasks(invocation, &request));
  TACHO_ASSIGN_OR_RETURN(const uint32_t length,
                         RequestMilliseconds(invocation, "for", kProfileLength));
  request.set_duration_ms(length);
  return request;
}

void WriteProfilesJson(std::ostream& out, const v1::TakeProfilesResponse& answer) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", answer.job());
    json.Field("attempt", uint64_t{answer.attempt()});
    json.Objects("profiles", answer.profiles(), [&](const v1::TaskProfile& profile) {
      json.Field("task", uint64_t{profile.task()});
      json.Field("host", profile.host());
      json.Field("path", profile.path());
      json.Field("bytes", uint64_t{profile.bytes()});
    });
    json.Objects("absent", answer.absent(), [&](const v1::AbsentTask& absent) {
      json.Field("task", uint64_t{absent.task()});
      json.Field("host", absent.host());
      json.Field("reason", absent.reason());
    });
  });
}

void PrintProfiles(std::ostream& out, const v1::TakeProfilesResponse& answer) {
  for (const v1::TaskProfile& profile : answer.profiles()) {
    out << "task " << profile.task() << " on " << Printable(profile.host()) << ": "
        << Printable(profile.path()) << ", " << Thousands(profile.bytes()) << " bytes\n";
  }
  for (const v1::AbsentTask& absent : answer.absent()) {
    out << "task " << absent.task() << " on " << Printable(absent.host())
        << ": none: " << Printable(absent.reason()) << '\n';
  }
}

void PrintProfilesCsv(std::ostream& out, const v1::TakeProfilesResponse& answer) {
  out << CsvLine({"task", "host", "path", "bytes", "reason"});
  for (const v1::TaskProfile& profile : answer.profiles()) {
    out << CsvLine({absl::StrCat(profile.task()), profile.host(), profile.path(),
                    absl::StrCat(profile.bytes()), ""});
  }
  for (const v1::AbsentTask& absent : answer.absent()) {
    out << CsvLine({absl::StrCat(absent.task()), absent.host(), "", "", absent.reason()});
  }
}

int RunProfile(const Invocation& invocation) {
  const auto request = ParseProfileRequest(invocation);
  if (!request.ok()) return UsageError(invocation.env, "profile", request.status().message());
  QueryClient client = Connect(invocation);
  const auto answer = client.TakeProfiles(*request);
  if (!answer.ok()) return JobCallError(invocation, client, request->job(), answer.status());
  switch (invocation.common.format) {
    case Format::kJson:
      WriteProfilesJson(*invocation.env.out, *answer);
      break;
    case Format::kCsv:
      PrintProfilesCsv(*invocation.env.out, *answer);
      break;
    case Format::kTable:
      PrintProfiles(*invocation.env.out, *answer);
      break;
  }
  return answer->profiles().empty() ? kNothing : kOk;
}

}  // namespace

Command ProfileCommand() {
  return {
      .name = "profile",
      .group = CommandGroup::kNow,
      .operands = "JOB",
      .summary = "Record profiles of a job's trainers, for TensorBoard and XProf",
      .details =
          R"(Asks the agents of the job's hosts; each asks the profiler servers of its trainers (JAX, TensorFlow,
PyTorch/XLA) for a trace, and stores it on its host below requests.profiles.directory of its
configuration. TensorBoard's profile plug-in opens that directory. Each place is also stored as an event
profile_taken of the job. docs/hang.md says how to set this up.

If the collector asks for tokens, this needs one with the role admin and the right to the job.

Examples:
  tachoctl profile bert-base
  tachoctl profile bert-base --task 0 --for 5s

JSON: {"job", "attempt", "profiles": [{"task", "host", "path", "bytes"}],
  "absent": [{"task", "host", "reason"}]}.
The exit code is 1 if there is no profile at all.)",
      .flags = {{.name = "task",
                 .placeholder = "N",
                 .help = "Only this task. Repeat for more.",
                 .repeated = true},
                {.name = "for",
                 .placeholder = "AGE",
                 .help = "How long to record; 2s unless given, at most 1m."}},
      .min_operands = 1,
      .max_operands = 1,
      .run = RunProfile};
}

}  // namespace tacho::ctl
