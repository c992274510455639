// Finds the command, parses the flags that all commands share, and runs it.
#include "client/ctl/commands/run.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/channel.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/insight/insight.h"
#include "client/ctl/line/command.h"
#include "client/ctl/line/parse.h"
#include "client/ctl/requests/requests.h"
#include "proto/base/nearest.h"

namespace tacho::ctl {
namespace {

// The index of the command's name, which follows any common flags.
size_t CommandIndex(const std::vector<std::string>& args) {
  size_t at = 0;
  while (at < args.size() && absl::StartsWith(args[at], "-")) {
    const bool takes_next =
        std::any_of(CommonFlags().begin(), CommonFlags().end(), [&](const FlagSpec& flag) {
          return !flag.placeholder.empty() &&
                 (args[at] == "--" + flag.name || args[at] == std::string{'-', flag.letter});
        });
    at += takes_next ? 2 : 1;
  }
  return std::min(at, args.size());
}

// "--points" for a command that has no such flag is mostly a mix-up of commands.
std::string OwnerOfFlag(const std::vector<std::string>& args, const Command& command) {
  for (const std::string& arg : args) {
    if (!absl::StartsWith(arg, "--")) continue;
    const std::string name = arg.substr(2, arg.find('=') - 2);
    const auto has = [&](const std::vector<FlagSpec>& flags) {
      return std::any_of(flags.begin(), flags.end(),
                         [&](const FlagSpec& flag) { return flag.name == name; });
    };
    if (name.empty() || has(command.flags) || has(CommonFlags())) continue;
    if (name == "metric" && absl::StrContains(command.operands, "METRIC")) {
      return absl::StrCat(" (a metric follows the job: tachoctl ", command.name, " JOB METRIC)");
    }
    for (const Command& other : Commands()) {
      if (has(other.flags)) return absl::StrCat(" (it belongs to 'tachoctl ", other.name, "')");
    }
    return "";
  }
  return "";
}

client::ChannelSecurity Security(const ParsedArgs& args, const Environment& env) {
  client::ChannelSecurity security = env.security;
  security.ca = args.Get("tls-ca").value_or(security.ca);
  security.certificate = args.Get("tls-cert").value_or(security.certificate);
  security.key = args.Get("tls-key").value_or(security.key);
  security.server_name = args.Get("tls-server-name").value_or(security.server_name);
  security.token_file = args.Get("token-file").value_or(security.token_file);
  security.allow_plaintext_token = args.Has("allow-plaintext-token");
  // A TLS file without --tls means TLS.
  security.tls |= args.Has("tls") || !security.ca.empty() || !security.certificate.empty() ||
                  !security.key.empty() || !security.server_name.empty();
  return security;
}

absl::StatusOr<CommonOptions> ParseCommon(const ParsedArgs& args, const Environment& env) {
  CommonOptions common;
  common.address = args.Get("address").value_or(env.address);
  if (common.address.empty() || absl::StrContains(common.address, "://")) {
    return absl::InvalidArgumentError(absl::StrCat("the address '", common.address,
                                                   "': expected HOST:PORT, like ",
                                                   std::string(kDefaultAddress)));
  }
  if (!absl::StrContains(common.address, ':')) absl::StrAppend(&common.address, ":7411");
  if (const auto format = args.Get("output")) {
    common.format = *format == "json"  ? Format::kJson
                    : *format == "csv" ? Format::kCsv
                                       : Format::kTable;
  }
  if (const auto timeout = args.Get("timeout")) {
    const absl::StatusOr<absl::Duration> duration = ParseDuration(*timeout);
    if (!duration.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--timeout ", duration.status().message()));
    }
    common.timeout = *duration;
  }
  common.security = Security(args, env);
  const absl::Status usable =
      client::CheckChannelSecurity(common.security, common.address, kSecurityFlags);
  if (!usable.ok()) return absl::InvalidArgumentError(usable.message());
  return common;
}

// A word after JOB is mostly a metric, for people who come from 'query'.
std::string HintForMetric(const Command& command, const std::vector<std::string>& operands) {
  if (!absl::StrContains(command.operands, "JOB") || operands.size() != 2) return "";
  const bool takes_metric = std::any_of(command.flags.begin(), command.flags.end(),
                                        [](const FlagSpec& flag) { return flag.name == "metric"; });
  if (takes_metric) {
    return absl::StrCat(". If '", operands[1], "' is a metric: tachoctl ", command.name, " ",
                        operands[0], " --metric ", operands[1]);
  }
  return absl::StrCat(". For the values of a metric: tachoctl query ", operands[0], " ",
                      operands[1]);
}

absl::Status CheckOperands(const Command& command, const std::vector<std::string>& operands) {
  if (operands.size() < command.min_operands) {
    const std::string hint = operands.size() == 1 && command.name == "query"
                                 ? absl::StrCat("; its metrics: tachoctl metrics ", operands[0])
                                 : "";
    return absl::InvalidArgumentError(absl::StrCat("expected ", command.operands, hint));
  }
  if (operands.size() > command.max_operands) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", operands[command.max_operands], "' is one operand too many: expected ",
        command.operands.empty() ? "nothing" : command.operands, HintForMetric(command, operands)));
  }
  return absl::OkStatus();
}

int RunCommand(const Command& command, const std::vector<std::string>& args,
               const Environment& env) {
  std::vector<FlagSpec> flags = command.flags;
  flags.insert(flags.end(), CommonFlags().begin(), CommonFlags().end());
  const absl::StatusOr<ParsedArgs> parsed = ParseArgs(args, flags);
  if (!parsed.ok()) {
    return UsageError(env, command.name,
                      absl::StrCat(parsed.status().message(), OwnerOfFlag(args, command)));
  }
  if (parsed->Has("help")) {
    PrintCommandHelp(env, command, *env.out);
    return kOk;
  }
  if (const absl::Status status = CheckOperands(command, parsed->positionals()); !status.ok()) {
    return UsageError(env, command.name, status.message());
  }
  const absl::StatusOr<CommonOptions> common = ParseCommon(*parsed, env);
  if (!common.ok()) return UsageError(env, command.name, common.status().message());
  Environment adjusted = env;
  if (parsed->Has("utc")) adjusted.zone = absl::UTCTimeZone();
  if (parsed->Has("ascii")) adjusted.unicode = false;
  if (const auto color = parsed->Get("color"); color && *color != "auto") {
    adjusted.color = *color == "always";
  }
  return command.run({*parsed, adjusted, *common});
}

int RunWithoutCommand(const std::vector<std::string>& args, const Environment& env) {
  const absl::StatusOr<ParsedArgs> parsed = ParseArgs(args, CommonFlags());
  if (!parsed.ok()) {
    if (std::find(args.begin(), args.end(), "--version") != args.end()) {
      return RunCommand(*FindCommand("version"), {}, env);
    }
    return UsageError(env, "", parsed.status().message());
  }
  if (args.empty() || parsed->Has("help")) {
    PrintOverview(env, *env.out);
    return kOk;
  }
  return UsageError(env, "", "the command is missing, like 'jobs' or 'status JOB'");
}

}  // namespace

const std::vector<FlagSpec>& CommonFlags() {
  static const auto* const flags = new std::vector<FlagSpec>{
      {.name = "address",
       .letter = 'a',
       .placeholder = "HOST:PORT",
       .help = "The collector. Default: TACHO_ADDRESS from the environment, else 127.0.0.1:7411."},
      {.name = "output",
       .letter = 'o',
       .placeholder = "FORMAT",
       .help = "table, json or csv. Default: table.",
       .choices = {"table", "json", "csv"}},
      {.name = "timeout",
       .placeholder = "AGE",
       .help = "How long to wait for an answer, or for the next part of a long one. Default: 30s."},
      {.name = "tls",
       .help = "Use TLS. Default: on if TACHO_TLS=1 or one of the TLS flags is set."},
      {.name = "tls-ca",
       .placeholder = "FILE",
       .help = "The CA that signed the collector's certificate. Default: TACHO_TLS_CA, else the "
               "system's CAs."},
      {.name = "tls-cert",
       .placeholder = "FILE",
       .help = "Your client certificate. Default: TACHO_TLS_CERT."},
      {.name = "tls-key",
       .placeholder = "FILE",
       .help = "The key of your certificate. Default: TACHO_TLS_KEY."},
      {.name = "tls-server-name",
       .placeholder = "NAME",
       .help = "The name in the collector's certificate, if it is not the host of the address. "
               "Default: TACHO_TLS_SERVER_NAME."},
      {.name = "token-file",
       .placeholder = "FILE",
       .help = "The file that holds your token. Default: TACHO_TOKEN_FILE."},
      {.name = "allow-plaintext-token",
       .help = "Send the token without TLS, so that others on the network can read it."},
      {.name = "utc", .help = "Show times in UTC instead of local time."},
      {.name = "color",
       .placeholder = "WHEN",
       .help = "auto (on a terminal, unless NO_COLOR is set), always or never. Default: auto.",
       .choices = {"auto", "always", "never"}},
      {.name = "ascii", .help = "Draw with ASCII characters only."},
      {.name = "help", .letter = 'h', .help = "Show this help."}};
  return *flags;
}

const std::vector<Command>& Commands() {
  static const auto* const commands = new std::vector<Command>{
      // The order of the help; commands of a group stand together.
      JobsCommand(),   StatusCommand(),   WatchCommand(),       ConditionsCommand(),
      HangCommand(),   ProfileCommand(),  AgentsCommand(),      AttemptsCommand(),
      QueryCommand(),  PlotCommand(),     MetricsCommand(),     SeriesCommand(),
      LabelsCommand(), EventsCommand(),   NonFiniteCommand(),   GoodputCommand(),
      CostCommand(),   ForecastCommand(), CompareCommand(),     ReportCommand(),
      TagCommand(),    GroupCommand(),    NoteCommand(),        ImportCommand(),
      PushCommand(),   ExportCommand(),   CardinalityCommand(), UpCommand(),
      AdminCommand(),  ClusterCommand(),  BucketCommand(),      CompletionCommand(),
      HelpCommand(),   VersionCommand()};
  return *commands;
}

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int UnknownCommand(const Environment& env, const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : Commands()) known.push_back(command.name);
  return UsageError(env, "", absl::StrCat("no command '", name, "'", DidYouMean(name, known)));
}

int Run(const std::vector<std::string>& args, const Environment& env) {
  const size_t at = CommandIndex(args);
  if (at == args.size()) return RunWithoutCommand(args, env);
  const Command* command = FindCommand(args[at]);
  if (command == nullptr) return UnknownCommand(env, args[at]);
  std::vector<std::string> rest = args;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  return RunCommand(*command, rest, env);
}

}  // namespace tacho::ctl
