// A command of tachoctl, and what all commands share.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/ctl/line/environment.h"
#include "proto/base/flags.h"

namespace tacho::ctl {

enum class Format { kTable, kJson, kCsv };

struct CommonOptions {
  std::string address;
  Format format = Format::kTable;
  absl::Duration timeout = absl::Seconds(30);
  client::ChannelSecurity security;
};

// One use of a command, whose flags are known and well-formed.
struct Invocation {
  const ParsedArgs& args;
  const Environment& env;
  CommonOptions common;

  const std::string& Positional(size_t index) const { return args.positionals()[index]; }
};

// The headings of the help.
enum class CommandGroup { kNow, kHistory, kCompare, kMark, kData, kOperate, kTool };

struct Command {
  std::string name;
  CommandGroup group = CommandGroup::kTool;
  std::string operands;  // "JOB [METRIC]"
  std::string summary;   // One line.
  std::string details;   // Paragraphs for its help, examples included; ends without a line break.
  std::vector<FlagSpec> flags;
  size_t min_operands = 0;
  size_t max_operands = 0;
  int (*run)(const Invocation&) = nullptr;
};

inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

// Flags that every command takes.
const std::vector<FlagSpec>& CommonFlags();

// All commands, in the order of the help.
const std::vector<Command>& Commands();
const Command* FindCommand(absl::string_view name);

// Prints what is wrong with the command line and where its help is; returns kUsage.
int UsageError(const Environment& env, absl::string_view command, absl::string_view message);

}  // namespace tacho::ctl
