#include "server/command_line.h"

#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tacho::server {

const char kCommandLineHelp[] =
    R"(tacho-collector records training jobs: agents stream samples to it over gRPC, it
stores them durably, answers queries, and serves aggregates to Prometheus.

Usage: tacho-collector [--config FILE] [options]

  --config FILE     Read the configuration from FILE (YAML). Without it every key
                    has its default: loopback addresses, data in ./tacho-data.
  --grpc ADDRESS    Listen for agents and queries here instead of listen.grpc,
                    e.g. 127.0.0.1:7411. Port 0 takes a free one.
  --http ADDRESS    Serve /metrics, /healthz, /readyz here instead of listen.http.
  --data DIRECTORY  Keep the database here instead of in storage.path.
  --port-file FILE  After the start, write {"grpc":PORT,"http":PORT} to FILE.

  --check-config    Check the configuration and the files of listen.tls and auth that
                    it names, say what is wrong, and exit.
  --print-config    Print the whole configuration with every key explained, and exit.
  --check-store DIRECTORY
                    Read the whole database there against its checksums, a snapshot
                    for instance, say what is in it, and exit. No collector may be
                    using it.
  --make-token      Make a new token and exit: the token, shown this once, goes to
                    standard output, its entry for auth.tokens_file to standard
                    error.
  --version         Print the version and exit.
  --help            Print this and exit.

Signals: SIGTERM and SIGINT drain (what was received is made durable and
acknowledged, then everything is closed); a second one ends the process at once.
SIGHUP reads the configuration again: all that changed is put in force, or nothing
is, and the log says why.

Exit codes: 0 clean, 1 the collector could not start or close its data cleanly, or
--check-store found damage, 2 wrong usage or configuration.

Examples:
  tacho-collector --print-config > collector.yaml
  tacho-collector --config collector.yaml --check-config
  tacho-collector --config collector.yaml
  (umask 077; tacho-collector --make-token > agent.token)
)";

namespace {

using Mode = CommandLine::Mode;

const std::map<absl::string_view, Mode>& Modes() {
  static const auto* const modes =
      new std::map<absl::string_view, Mode>{{"help", Mode::kHelp},
                                            {"version", Mode::kVersion},
                                            {"check-config", Mode::kCheckConfig},
                                            {"print-config", Mode::kPrintConfig},
                                            {"make-token", Mode::kMakeToken}};
  return *modes;
}

std::string* ValueOf(absl::string_view name, CommandLine* line) {
  if (name == "config") return &line->config;
  if (name == "grpc") return &line->grpc;
  if (name == "http") return &line->http;
  if (name == "data") return &line->data;
  if (name == "check-store") return &line->check_store;
  if (name == "port-file") return &line->port_file;
  return nullptr;
}

absl::Status Wrong(absl::string_view argument, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(argument, ": ", problem, "; see tacho-collector --help"));
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(std::span<const char* const> arguments) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view argument = arguments[i];
    if (!absl::StartsWith(argument, "--")) return Wrong(argument, "an option was expected");
    absl::string_view name = argument.substr(2);
    std::optional<std::string> value;
    if (const size_t equals = name.find('='); equals != absl::string_view::npos) {
      value = std::string(name.substr(equals + 1));
      name = name.substr(0, equals);
    }
    if (const auto mode = Modes().find(name); mode != Modes().end()) {
      if (value.has_value()) return Wrong(argument, "takes no value");
      if (line.mode != Mode::kRun) return Wrong(argument, "only one of these can be asked for");
      line.mode = mode->second;
      continue;
    }
    std::string* const target = ValueOf(name, &line);
    if (target == nullptr) return Wrong(argument, "unknown option");
    if (!value.has_value() && i + 1 < arguments.size()) value = arguments[++i];
    if (!value.has_value() || value->empty()) return Wrong(argument, "needs a value");
    *target = *std::move(value);
    if (target != &line.check_store) continue;
    if (line.mode != Mode::kRun) return Wrong(argument, "only one of these can be asked for");
    line.mode = Mode::kCheckStore;
  }
  return line;
}

}  // namespace tacho::server
