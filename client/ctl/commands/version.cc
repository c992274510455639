#include "client/ctl/commands/commands.h"

namespace tacho::ctl {
namespace {

int Run(const Invocation& invocation) {
  *invocation.env.out << "tachoctl " << TACHO_VERSION << '\n';
  return kOk;
}

}  // namespace

Command VersionCommand() {
  return {.name = "version",
          .operands = "",
          .summary = "Show the version of tachoctl",
          .details = "",
          .flags = {},
          .min_operands = 0,
          .max_operands = 0,
          .run = Run};
}

}  // namespace tacho::ctl
