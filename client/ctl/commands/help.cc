#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/run.h"
#include "client/ctl/commands/usage.h"

namespace tacho::ctl {
namespace {

int RunVersion(const Invocation& invocation) {
  *invocation.env.out << "tachoctl " << TACHO_VERSION << '\n';
  return kOk;
}

int RunHelp(const Invocation& invocation) {
  if (invocation.args.positionals().empty()) {
    PrintOverview(invocation.env, *invocation.env.out);
    return kOk;
  }
  const std::string& name = invocation.Positional(0);
  const Command* command = FindCommand(name);
  if (command == nullptr) return UnknownCommand(invocation.env, name);
  PrintCommandHelp(invocation.env, *command, *invocation.env.out);
  return kOk;
}

}  // namespace

Command HelpCommand() {
  return {.name = "help",
          .operands = "[COMMAND]",
          .summary = "Show what a command does, with examples",
          .details = "",
          .flags = {},
          .min_operands = 0,
          .max_operands = 1,
          .run = RunHelp};
}

Command VersionCommand() {
  return {.name = "version",
          .operands = "",
          .summary = "Show the version of tachoctl",
          .details = "",
          .flags = {},
          .min_operands = 0,
          .max_operands = 0,
          .run = RunVersion};
}

}  // namespace tacho::ctl
