// Scripts that complete tachoctl's command line in a shell, made from the commands' descriptions.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/command.h"

namespace tacho::ctl {

// The kind of a command's operands.
struct OperandKinds {
  bool job = false;                // The first is a job.
  bool jobs = false;               // Those after it may be jobs too.
  bool metrics = false;            // Those after it may be metrics.
  bool files = false;              // Those after the first are files.
  std::vector<std::string> words;  // The first is one of these.
};
OperandKinds KindsOf(const Command& command);

enum class ValueKind { kNothing, kChoice, kFile, kMetric, kOther };
ValueKind ValueKindOf(const FlagSpec& flag);

// The flags that take the next word, as they are typed; --address left out.
std::vector<std::string> FlagsWithValue();

// The first sentence of a flag's help, for a menu.
std::string FirstSentence(const std::string& help);

std::string BashScript();
std::string ZshScript();
std::string FishScript();

}  // namespace tacho::ctl
