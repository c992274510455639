// The script for fish: one 'complete' for each command, flag and kind of operand.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/shells/completion_scripts.h"

namespace tacho::ctl {
namespace {

// As in bash: names come from the collector each time, quietly and with a short patience.
constexpr absl::string_view kFishScript =
    R"fish(# Completion of tachoctl for fish:
# tachoctl completion fish > ~/.config/fish/completions/tachoctl.fish

function __tachoctl_words  # The command and the operands before the cursor, one a line.
    set -l skip
    for word in (commandline -opc)[2..-1]
        if set -q skip[1]
            set skip
            continue
        end
        switch $word
            case -a --address @VALUE_FLAGS@
                set skip 1
            case '-*'
            case '*'
                printf '%s\n' $word
        end
    end
end

function __tachoctl_where  # The flag --address, if it was typed.
    set -l words (commandline -opc)
    for i in (seq 2 (math (count $words) - 1))
        if contains -- $words[$i] -a --address
            printf '%s\n' --address $words[(math $i + 1)]
        end
    end 2>/dev/null
end

function __tachoctl_at  # FIRST LAST COMMAND...: whether an operand of one of the commands is next.
    set -l words (__tachoctl_words)
    set -l have (math (count $words) - 1)
    test (count $words) -gt 0; or return 1
    contains -- $words[1] $argv[3..-1]; and test $have -ge $argv[1] -a $have -le $argv[2]
end

function __tachoctl_in  # COMMAND: whether it was typed.
    set -l words (__tachoctl_words)
    test (count $words) -gt 0; and test $words[1] = $argv[1]
end

function __tachoctl_jobs
    tachoctl completion job-names (__tachoctl_where) --timeout 1s 2>/dev/null
end

function __tachoctl_metrics
    set -l words (__tachoctl_words)
    test (count $words) -gt 1; or return
    tachoctl completion metric-names (__tachoctl_where) --timeout 1s -- $words[2] 2>/dev/null
end

complete -c tachoctl -f
)fish";

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string ValueOf(const FlagSpec& flag) {
  switch (ValueKindOf(flag)) {
    case ValueKind::kNothing:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(" -x -a ", FishQuoted(absl::StrJoin(flag.choices, " ")));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kMetric:
      return " -x -a '(__tachoctl_metrics)'";
    case ValueKind::kOther:
      break;
  }
  return " -x";
}

// `condition` begins with a space, or is empty.
void AddFishFlag(const FlagSpec& flag, const std::string& condition, std::string& script) {
  absl::StrAppend(&script, "complete -c tachoctl", condition, " -l ", flag.name);
  if (flag.letter != 0) absl::StrAppend(&script, " -s ", std::string(1, flag.letter));
  absl::StrAppend(&script, ValueOf(flag), " -d ", FishQuoted(FirstSentence(flag.help)), "\n");
}

// Operands number `first` to `last` of a command, from 0.
void AddOperand(const Command& command, int first, int last, const std::string& offer,
                std::string& script) {
  absl::StrAppend(&script, "complete -c tachoctl -n '__tachoctl_at ", first, " ", last, " ",
                  command.name, "' ", offer, "\n");
}

void AddFishOperands(const Command& command, std::string& script) {
  constexpr int kMany = 1000;
  const OperandKinds kinds = KindsOf(command);
  if (!kinds.words.empty()) {
    AddOperand(command, 0, 0, "-a " + FishQuoted(absl::StrJoin(kinds.words, " ")), script);
  }
  if (kinds.job) {
    AddOperand(command, 0, kinds.jobs ? kMany : 0, "-a '(__tachoctl_jobs)'", script);
  }
  if (kinds.metrics) AddOperand(command, 1, kMany, "-a '(__tachoctl_metrics)'", script);
  if (kinds.files) AddOperand(command, 1, kMany, "-F", script);
}

}  // namespace

std::string FishScript() {
  std::string script =
      absl::StrReplaceAll(kFishScript, {{"@VALUE_FLAGS@", absl::StrJoin(FlagsWithValue(), " ")}});
  for (const FlagSpec& flag : CommonFlags()) AddFishFlag(flag, "", script);
  for (const Command& command : Commands()) {
    absl::StrAppend(&script,
                    "\ncomplete -c tachoctl -n 'not count (__tachoctl_words) >/dev/null' -a ",
                    command.name, " -d ", FishQuoted(command.summary), "\n");
    for (const FlagSpec& flag : command.flags) {
      AddFishFlag(flag, absl::StrCat(" -n '__tachoctl_in ", command.name, "'"), script);
    }
    AddFishOperands(command, script);
  }
  return script;
}

}  // namespace tacho::ctl
