// The commands of tachoctl, one file each.
#pragma once

#include "client/ctl/line/command.h"

namespace tacho::ctl {

Command JobsCommand();
Command StatusCommand();
Command WatchCommand();
Command AgentsCommand();
Command ConditionsCommand();
Command AttemptsCommand();
Command MetricsCommand();
Command SeriesCommand();
Command LabelsCommand();
Command QueryCommand();
Command PlotCommand();
Command EventsCommand();
Command NonFiniteCommand();
Command GoodputCommand();
Command CompareCommand();
Command ReportCommand();
Command CardinalityCommand();
Command AdminCommand();
Command CompletionCommand();
Command ExportCommand();
Command HelpCommand();
Command ImportCommand();
Command VersionCommand();

}  // namespace tacho::ctl
