#include "client/ctl/commands/usage.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/run.h"

namespace tacho::ctl {
namespace {

int Run(const Invocation& invocation) {
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
          .run = Run};
}

}  // namespace tacho::ctl
