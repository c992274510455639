// The commands of tachoctl, one file each.
#pragma once

#include "client/ctl/command.h"

namespace tacho::ctl {

Command JobsCommand();
Command StatusCommand();
Command MetricsCommand();
Command SeriesCommand();
Command QueryCommand();
Command EventsCommand();
Command CardinalityCommand();
Command AdminCommand();
Command CompletionCommand();
Command HelpCommand();
Command VersionCommand();

}  // namespace tacho::ctl
