// The whole of tachoctl but its process.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/environment.h"

namespace tacho::ctl {

// `args` without the program's name. Returns what the process should exit with.
int Run(const std::vector<std::string>& args, const Environment& env);

// Says on err that there is no such command, and which one may be meant; returns kUsage.
int UnknownCommand(const Environment& env, const std::string& name);

}  // namespace tacho::ctl
