// Help as text.
#pragma once

#include <ostream>

#include "client/ctl/line/command.h"

namespace tacho::ctl {

// What 'tachoctl' alone says: what it is, its commands, a first look, common flags, exit codes.
void PrintOverview(const Environment& env, std::ostream& out);

void PrintCommandHelp(const Environment& env, const Command& command, std::ostream& out);

}  // namespace tacho::ctl
