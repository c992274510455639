#include "agent/diagnose/command.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/diagnose/finding.h"
#include "proto/base/flags.h"
#include "proto/base/status_macros.h"
#include "proto/config/yaml_config.h"

namespace tacho::agent {
namespace {

constexpr int kExitUsage = 2;
constexpr absl::Duration kShortest = absl::Milliseconds(10);
constexpr absl::Duration kLongest = absl::Minutes(10);

const std::vector<FlagSpec>& Specs() {
  static const auto* const specs = new std::vector<FlagSpec>{
      {.name = "config", .placeholder = "FILE"},
      {.name = "collector", .placeholder = "HOST:PORT,..."},
      {.name = "output", .letter = 'o', .placeholder = "FORMAT", .choices = {"table", "json"}},
      {.name = "timeout", .placeholder = "DURATION"},
      {.name = "compute", .placeholder = "WHEN", .choices = {"auto", "never", "always"}},
      {.name = "python", .placeholder = "PROGRAM"},
      {.name = "compute-timeout", .placeholder = "DURATION"},
      {.name = "help", .letter = 'h'},
  };
  return *specs;
}

// Leaves *duration alone if the flag was not given.
absl::Status ReadDuration(const ParsedArgs& parsed, const std::string& flag,
                          absl::Duration* duration) {
  const std::optional<std::string> value = parsed.Get(flag);
  if (!value) return absl::OkStatus();
  if (absl::ParseDuration(*value, duration) && *duration >= kShortest && *duration <= kLongest) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, " '", *value, "': expected a duration from 10ms to 10m, such as 10s"));
}

absl::Status LoadConfig(const DiagnoseFlags& flags, config::v1::Agent* config) {
  absl::Status status = flags.config.empty() ? config::ParseYaml("", "", config)
                                             : config::LoadYamlFile(flags.config, config);
  if (!status.ok() || flags.collector.empty()) return status;
  config->mutable_collector()->clear_address();
  config->mutable_collector()->clear_addresses();
  for (const absl::string_view address : absl::StrSplit(flags.collector, ',')) {
    config->mutable_collector()->add_addresses(std::string(address));
  }
  return config::ParseYaml(config::PrintYaml(*config), "configuration with the flags", config);
}

}  // namespace

const char kDiagnoseHelp[] =
    R"(tacho-agent diagnose checks this machine, its chips and the way to the collectors, and exits.

Usage: tacho-agent diagnose [--config FILE] [--collector HOST:PORT,...] [-o table|json]

  --config FILE          Reads the agent's configuration. Without it every key has its default.
  --collector HOST:PORT  Replaces collector.addresses. Separate several collectors with commas.
  -o, --output FORMAT    table for people (the default), json for programs.
  --timeout DURATION     How long a check may wait for something outside this process; 10s.
  --compute WHEN         Whether to multiply matrices on each chip: auto (the default; not while a
                         trainer runs here), never or always.
  --python PROGRAM       The Python that multiplies them; python3.
  --compute-timeout DURATION
                         How long that may take; 2m.
  -h, --help             Prints this help and exits.

diagnose stores nothing and disturbs no agent. Run it as the agent's user, before the agent starts or
while it runs. A check that does not end in time is a finding. docs/diagnose.md explains each check.

Exit status: 0 nothing to do, 2 wrong flags or configuration, 3 warnings, 4 failures.
)";

absl::StatusOr<DiagnoseFlags> ParseDiagnoseFlags(const std::vector<std::string>& arguments) {
  TACHO_ASSIGN_OR_RETURN(const ParsedArgs parsed, ParseArgs(arguments, Specs()));
  if (!parsed.positionals().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("diagnose takes flags only, not '", parsed.positionals().front(), "'"));
  }
  DiagnoseFlags flags;
  flags.help = parsed.Has("help");
  flags.config = parsed.Get("config").value_or("");
  flags.collector = parsed.Get("collector").value_or("");
  flags.json = parsed.Get("output") == "json";
  flags.context.python = parsed.Get("python").value_or(flags.context.python);
  TACHO_RETURN_IF_ERROR(ReadDuration(parsed, "timeout", &flags.context.timeout));
  TACHO_RETURN_IF_ERROR(ReadDuration(parsed, "compute-timeout", &flags.context.compute_timeout));
  using Compute = DiagnoseContext::Compute;
  const std::string compute = parsed.Get("compute").value_or("auto");
  flags.context.compute = compute == "never"    ? Compute::kNever
                          : compute == "always" ? Compute::kAlways
                                                : Compute::kAuto;
  return flags;
}

int RunDiagnose(const std::vector<std::string>& arguments, const std::string& version,
                std::ostream* out, std::ostream* errors) {
  absl::StatusOr<DiagnoseFlags> flags = ParseDiagnoseFlags(arguments);
  if (!flags.ok()) {
    *errors << "tacho-agent: " << flags.status().message() << "\nTry tacho-agent diagnose --help\n";
    return kExitUsage;
  }
  if (flags->help) {
    *out << kDiagnoseHelp;
    return 0;
  }
  DiagnoseContext context = flags->context;
  context.version = version;
  context.environment = [](const char* name) {
    return ::getenv(name);
  };  // NOLINT(concurrency-mt-unsafe)
  if (const absl::Status status = LoadConfig(*flags, &context.config); !status.ok()) {
    *errors << "tacho-agent: " << status.message() << "\n";
    return kExitUsage;
  }
  const CheckResults results = RunChecks(AllChecks(context));
  *out << (flags->json ? FindingsAsJson(results.findings) : FindingsAsTable(results.findings));
  out->flush();
  const int code = ExitCodeOf(results.findings);
  // Threads that hang use what exit() would take apart.
  if (results.left_behind) ::_exit(code);
  return code;
}

}  // namespace tacho::agent
