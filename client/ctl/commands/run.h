// All of tachoctl except its process.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/environment.h"

namespace tacho::ctl {

// `args` does not have the program's name. Returns the exit status.
int Run(const std::vector<std::string>& args, const Environment& env);

// Prints that the command does not exist, and the nearest one; returns kUsage.
int UnknownCommand(const Environment& env, const std::string& name);

}  // namespace tacho::ctl
