// The commands of tachoctl, and their help as text.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

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
Command TagCommand();
Command GroupCommand();
Command NoteCommand();
Command CardinalityCommand();
Command AdminCommand();
Command BucketCommand();
std::vector<std::string> AdminActions();  // The first operands that 'admin' takes.
Command CompletionCommand();
Command ExportCommand();
Command HelpCommand();
Command ImportCommand();
Command PushCommand();
Command UpCommand();
Command VersionCommand();

// Prints what 'tachoctl' without a command shows: its purpose, its commands, a first look, common
// flags, exit codes.
void PrintOverview(const Environment& env, std::ostream& out);
void PrintCommandHelp(const Environment& env, const Command& command, std::ostream& out);
// The heading of a group of commands, and what each exit code means.
const char* GroupTitle(CommandGroup group);
const std::vector<std::pair<int, std::string>>& ExitCodes();
// The page tachoctl.1 as troff, from the same texts.
void PrintManual(std::ostream& out);

}  // namespace tacho::ctl
