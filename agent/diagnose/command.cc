#include "agent/diagnose/command.h"

#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/diagnose/finding.h"
#include "agent/diagnose/runner.h"
#include "proto/config/yaml_config.h"

namespace tacho::agent {
namespace {

constexpr int kExitUsage = 2;
constexpr absl::Duration kShortest = absl::Milliseconds(10);
constexpr absl::Duration kLongest = absl::Minutes(10);

absl::Status ReadDuration(const std::string& flag, const std::string& value,
                          absl::Duration* duration) {
  if (absl::ParseDuration(value, duration) && *duration >= kShortest && *duration <= kLongest) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": a duration from 10ms to 10m expected, such as 10s"));
}

absl::Status SetFlag(const std::string& flag, const std::string& value, DiagnoseFlags* flags) {
  if (flag == "--config") {
    flags->config = value;
  } else if (flag == "--collector") {
    flags->collector = value;
  } else if (flag == "--python") {
    flags->context.python = value;
  } else if (flag == "--timeout") {
    return ReadDuration(flag, value, &flags->context.timeout);
  } else if (flag == "--compute-timeout") {
    return ReadDuration(flag, value, &flags->context.compute_timeout);
  } else if (flag == "-o") {
    if (value != "json" && value != "table") {
      return absl::InvalidArgumentError("-o: 'table' or 'json' expected");
    }
    flags->json = value == "json";
  } else if (flag == "--compute") {
    using Compute = DiagnoseContext::Compute;
    if (value != "auto" && value != "never" && value != "always") {
      return absl::InvalidArgumentError("--compute: 'auto', 'never' or 'always' expected");
    }
    flags->context.compute = value == "auto"    ? Compute::kAuto
                             : value == "never" ? Compute::kNever
                                                : Compute::kAlways;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("'", flag, "' is no flag of diagnose"));
  }
  return absl::OkStatus();
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
    R"(tacho-agent diagnose: checks this machine, its chips and the way to the collectors, and ends.

Usage: tacho-agent diagnose [--config FILE] [--collector HOST:PORT,...] [-o table|json]

  --config FILE          The agent's configuration; without it every key has its default.
  --collector HOST:PORT  Instead of the configuration's collector.addresses.
  -o table|json          For people (the default) or for machines.
  --timeout DURATION     How long a check may wait for others; 10s.
  --compute WHEN         Multiply matrices on each chip: auto (not while a trainer runs here), never,
                         always.
  --python PROGRAM       With which the product is computed; python3.
  --compute-timeout DURATION
                         How long that may take; 2m.

Nothing is stored and no agent is disturbed: run it as the user of the agent, beside it or before it.
Checks that do not end in time are findings; docs/diagnose.md has each check.

Exit codes: 0 nothing to do, 3 warnings, 4 failures, 2 wrong flags or configuration.
)";

absl::StatusOr<DiagnoseFlags> ParseDiagnoseFlags(const std::vector<std::string>& arguments) {
  DiagnoseFlags flags;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (flag == "--help" || flag == "-h") {
      flags.help = true;
      continue;
    }
    std::string value;
    const size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("'", flag, "': a value is missing"));
    }
    if (absl::Status status = SetFlag(flag, value, &flags); !status.ok()) return status;
  }
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
