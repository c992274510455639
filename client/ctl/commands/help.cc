// Help as text, made from the commands' descriptions, so that it cannot miss one.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/commands/run.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr size_t kFlagColumn = 26;
constexpr size_t kWidth = 96;

void PrintWrapped(std::ostream& out, absl::string_view text, size_t indent, size_t width) {
  size_t column = indent;
  for (const auto& word : absl::StrSplit(text, ' ')) {
    const size_t size = DisplayWidth(word);
    if (column > indent && column + 1 + size > width) {
      out << '\n' << std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out << ' ';
      ++column;
    }
    out << std::string(word);
    column += size;
  }
  out << '\n';
}

void PrintFlags(const Environment& env, const std::vector<FlagSpec>& flags, std::ostream& out) {
  const size_t width = env.width == 0 ? kWidth : std::clamp<size_t>(env.width, 60, kWidth);
  for (const FlagSpec& flag : flags) {
    std::string left = flag.letter != 0 ? absl::StrCat("  -", std::string(1, flag.letter), ", ")
                                        : std::string("      ");
    absl::StrAppend(&left, "--", flag.name, flag.placeholder.empty() ? "" : " ", flag.placeholder);
    out << left;
    if (left.size() + 2 > kFlagColumn) {
      out << '\n' << std::string(kFlagColumn, ' ');
    } else {
      out << std::string(kFlagColumn - left.size(), ' ');
    }
    PrintWrapped(out, flag.help, kFlagColumn, width);
  }
}

}  // namespace

const char* GroupTitle(CommandGroup group) {
  switch (group) {
    case CommandGroup::kNow:
      return "What runs now";
    case CommandGroup::kHistory:
      return "What was recorded";
    case CommandGroup::kCompare:
      return "Comparing runs";
    case CommandGroup::kMark:
      return "Keeping order";
    case CommandGroup::kData:
      return "Data in and out";
    case CommandGroup::kOperate:
      return "The collector";
    case CommandGroup::kTool:
      break;
  }
  return "This tool";
}

namespace {

void PrintCommands(std::ostream& out) {
  const Command* before = nullptr;
  for (const Command& command : Commands()) {
    if (before == nullptr || before->group != command.group) {
      out << '\n' << GroupTitle(command.group) << ":\n";
    }
    std::string left = absl::StrCat("  ", command.name, " ", command.operands);
    if (left.size() + 2 > kFlagColumn) {
      out << left << '\n';
      left.clear();
    }
    left.resize(kFlagColumn, ' ');
    out << left << command.summary << '\n';
    before = &command;
  }
}

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

void PrintOverview(const Environment& env, std::ostream& out) {
  out << "tachoctl asks a Tachograph collector about training jobs.\n\n"
         "Usage: tachoctl COMMAND [OPERANDS] [FLAGS]\n";
  PrintCommands(out);
  out << R"(
A first look:
  tachoctl jobs                            list the jobs
  tachoctl status JOB                      show a job's health, progress and slowest tasks
  tachoctl query JOB loss --points 40      show the course of a metric
  tachoctl help query                      show everything a query can do, with examples

Flags of every command:
)";
  PrintFlags(env, CommonFlags(), out);
  out << "\nExit codes:\n";
  for (const auto& [code, meaning] : ExitCodes()) {
    out << "  " << code << "  ";
    PrintWrapped(out, meaning, 5, kWidth);
  }
}

const std::vector<std::pair<int, std::string>>& ExitCodes() {
  static const auto* const codes = new std::vector<std::pair<int, std::string>>{
      {kOk, "success"},
      {kNothing, "nothing found, or the collector refused"},
      {kUsage, "wrong command line"},
      {kUnreachable, "no collector at the address"},
      {kThreshold,
       "a check that was asked for failed: a --threshold of 'report', which has written its "
       "report; "
       "a condition of the severity of 'conditions --fail-on' holds; or collectors cannot share "
       "the bucket of 'bucket probe'"}};
  return *codes;
}

void PrintCommandHelp(const Environment& env, const Command& command, std::ostream& out) {
  out << command.summary << ".\n\nUsage: tachoctl " << command.name
      << (command.operands.empty() ? "" : " ") << command.operands << " [FLAGS]\n";
  if (!command.details.empty()) out << '\n' << command.details << '\n';
  if (!command.flags.empty()) {
    out << "\nFlags:\n";
    PrintFlags(env, command.flags, out);
  }
  out << "\nFlags of every command:\n";
  PrintFlags(env, CommonFlags(), out);
}

}  // namespace tacho::ctl
