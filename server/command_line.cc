#include "server/command_line.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/flags.h"
#include "proto/base/status_macros.h"

namespace tacho::server {

const char kCommandLineHelp[] =
    R"(tacho-collector records training jobs. Agents stream samples to it over gRPC; it
stores them durably, answers queries, and serves aggregates to Prometheus.

Usage: tacho-collector [--config FILE] [options]

  --config FILE     Read the configuration from FILE (YAML). Without it, every key
                    has its default: loopback addresses, data in
                    $XDG_STATE_HOME/tachograph/collector (~/.local/state/...), for
                    root in /var/lib/tachograph/collector if /var/lib/tachograph
                    is there and belongs to root.
  --grpc ADDRESS    Listen here for agents and queries, instead of on listen.grpc,
                    e.g. 127.0.0.1:7411. Port 0 picks a free port.
  --http ADDRESS    Serve the page, /metrics, /healthz and /readyz here, instead of
                    on listen.http.
  --data DIRECTORY  Keep the database here, instead of in storage.path.
  --port-file FILE  Write {"grpc":PORT,"http":PORT} to FILE after the start.
  --web-directory DIRECTORY
                    Serve the page's files from DIRECTORY, instead of those in the
                    program: for work on the page. Needs a loopback address in
                    listen.http.

  --check-config    Check the configuration and the files that listen.tls and auth
                    name, report what is wrong, and exit.
  --print-config    Print the whole configuration, with an explanation of every
                    key, and exit.
  --check-store DIRECTORY
                    Read the whole database in DIRECTORY, e.g. a snapshot, verify
                    its checksums, report what it contains, and exit. No collector
                    may be using it.
  --check-bucket    Look whether the bucket of the configuration has all that a
                    restore needs, report what is missing or damaged, and exit.
                    Only reads; a collector may be using the bucket. With --deep,
                    read all blocks of old days, too.
  --restore-from-bucket DIRECTORY
                    Make DIRECTORY, which must be empty or not there, a store of its
                    own from the bucket of the configuration, for a collector without
                    a bucket, verify it, and exit. Only reads the bucket, also while a
                    collector uses it. With --days N, bring closed days only of the
                    last N days; 0 brings none.
  --explain-mapping FILE
                    Read a captured request from FILE, of remote write or of
                    OpenTelemetry metrics in protobuf, show which job, task, host and
                    metric each of its series would become under interop.mapping, and
                    exit. Stores nothing.
  --make-token      Print a new token and exit. The token goes to standard output
                    and is shown only this once; its entry for auth.tokens_file
                    goes to standard error.
  --version         Print the version and exit.
  --help            Print this help and exit.

Signals: SIGTERM and SIGINT drain the collector: it makes durable and acknowledges
what it has received, then closes everything. A second signal ends the process at
once. SIGHUP reads the configuration again: either all changes take effect, or none
does and the log says why.

Exit status: 0 success; 1 the collector could not start, could not close its data
cleanly, a restore failed, or a check found damage; 2 wrong usage or configuration.

Examples:
  tacho-collector --print-config > collector.yaml
  tacho-collector --config collector.yaml --check-config
  tacho-collector --config collector.yaml
  tacho-collector --config collector.yaml --check-bucket --deep
  (umask 077; tacho-collector --make-token > agent.token)
)";

namespace {

using Mode = CommandLine::Mode;

struct ModeFlag {
  const char* name;
  Mode mode;
};
constexpr ModeFlag kModes[] = {{"help", Mode::kHelp},
                               {"version", Mode::kVersion},
                               {"check-config", Mode::kCheckConfig},
                               {"print-config", Mode::kPrintConfig},
                               {"check-store", Mode::kCheckStore},
                               {"check-bucket", Mode::kCheckBucket},
                               {"restore-from-bucket", Mode::kRestoreFromBucket},
                               {"explain-mapping", Mode::kExplainMapping},
                               {"make-token", Mode::kMakeToken}};

struct ValueFlag {
  const char* name;
  const char* placeholder;
  std::string CommandLine::*value;
};
constexpr ValueFlag kValues[] = {{"config", "FILE", &CommandLine::config},
                                 {"grpc", "ADDRESS", &CommandLine::grpc},
                                 {"http", "ADDRESS", &CommandLine::http},
                                 {"data", "DIRECTORY", &CommandLine::data},
                                 {"check-store", "DIRECTORY", &CommandLine::check_store},
                                 {"restore-from-bucket", "DIRECTORY", &CommandLine::restore},
                                 {"explain-mapping", "FILE", &CommandLine::explain_mapping},
                                 {"port-file", "FILE", &CommandLine::port_file},
                                 {"web-directory", "DIRECTORY", &CommandLine::web_directory}};

constexpr char kDays[] = "days";
constexpr char kDeep[] = "deep";

// The last value of a setting counts, so that a wrapper can append its own.
std::vector<FlagSpec> Flags() {
  std::vector<FlagSpec> flags;
  for (const ValueFlag& flag : kValues) {
    const bool setting = flag.value != &CommandLine::check_store &&
                         flag.value != &CommandLine::restore &&
                         flag.value != &CommandLine::explain_mapping;
    flags.push_back({.name = flag.name, .placeholder = flag.placeholder, .repeated = setting});
  }
  for (const ModeFlag& flag : kModes) {
    const bool has_value = flag.mode == Mode::kCheckStore ||
                           flag.mode == Mode::kRestoreFromBucket ||
                           flag.mode == Mode::kExplainMapping;
    if (!has_value) flags.push_back({.name = flag.name});
  }
  flags.push_back({.name = kDays, .placeholder = "N", .repeated = true});
  flags.push_back({.name = kDeep});
  return flags;
}

absl::Status Wrong(absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(problem, "; see tacho-collector --help"));
}

// What only one mode takes.
absl::Status ReadOptionsOfModes(const ParsedArgs& parsed, CommandLine* line) {
  line->deep = parsed.Has(kDeep);
  if (line->deep && line->mode != Mode::kCheckBucket) return Wrong("--deep is for --check-bucket");
  const auto days = parsed.Get(kDays);
  if (!days.has_value()) return absl::OkStatus();
  if (line->mode != Mode::kRestoreFromBucket) return Wrong("--days is for --restore-from-bucket");
  uint32_t number = 0;
  if (!absl::SimpleAtoi(*days, &number)) {
    return Wrong(absl::StrCat("--days ", *days, ": expected a number of days"));
  }
  line->days = number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::span<const char* const> arguments) {
  const auto parsed = ParseArgs({arguments.begin(), arguments.end()}, Flags());
  if (!parsed.ok()) return Wrong(parsed.status().message());
  if (!parsed->positionals().empty()) {
    return Wrong(absl::StrCat("'", parsed->positionals().front(), "': expected an option"));
  }
  CommandLine line;
  for (const ValueFlag& flag : kValues) {
    auto value = parsed->Get(flag.name);
    if (!value.has_value()) continue;
    if (value->empty()) {
      return Wrong(
          absl::StrCat("--", flag.name, "='': expected --", flag.name, " ", flag.placeholder));
    }
    line.*flag.value = *std::move(value);
  }
  const char* chosen = nullptr;
  for (const ModeFlag& flag : kModes) {
    if (!parsed->Has(flag.name)) continue;
    if (chosen != nullptr) {
      return Wrong(absl::StrCat("--", chosen, " and --", flag.name, " exclude each other"));
    }
    chosen = flag.name;
    line.mode = flag.mode;
  }
  TACHO_RETURN_IF_ERROR(ReadOptionsOfModes(*parsed, &line));
  return line;
}

}  // namespace tacho::server
