// The commands of tachoctl, and their help as text.
#pragma once

#include <ostream>

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
Command UpCommand();
Command VersionCommand();

// Prints what 'tachoctl' without a command shows: its purpose, its commands, a first look, common
// flags, exit codes.
void PrintOverview(const Environment& env, std::ostream& out);
void PrintCommandHelp(const Environment& env, const Command& command, std::ostream& out);

}  // namespace tacho::ctl
