// The script for zsh: one list of _arguments for each command.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/shells/completion_scripts.h"

namespace tacho::ctl {
namespace {

// As in bash: names come from the collector each time, quietly and with a short patience.
constexpr absl::string_view kZshScript =
    R"zsh(#compdef tachoctl
# Completion of tachoctl for zsh: tachoctl completion zsh > ~/.zfunc/_tachoctl
# with fpath+=~/.zfunc before compinit.

_tachoctl_jobs() {
  local -a names
  names=(${(f)"$(_call_program jobs tachoctl completion job-names $tacho_where --timeout 1s 2>/dev/null)"})
  compadd -a "$@" names
}

_tachoctl_metrics() {
  local -a names
  [[ -n $tacho_job ]] || return 1
  names=(${(f)"$(_call_program metrics tachoctl completion metric-names $tacho_where --timeout 1s -- \
    ${(q)tacho_job} 2>/dev/null)"})
  compadd -a "$@" names
}

_tachoctl() {
  local curcontext=$curcontext state line ret=1 i skip= tacho_command= tacho_job=
  local -a tacho_where
  typeset -A opt_args
  for ((i = 2; i < CURRENT; ++i)); do
    if [[ -n $skip ]]; then
      [[ $skip == address ]] && tacho_where=(--address ${words[i]})
      skip=
      continue
    fi
    case ${words[i]} in
      -a|--address) skip=address ;;
      @VALUE_FLAGS@) skip=value ;;
      -*) ;;
      *)
        if [[ -z $tacho_command ]]; then
          tacho_command=${words[i]}
        elif [[ -z $tacho_job ]]; then
          tacho_job=${(Q)words[i]}
        fi ;;
    esac
  done
  local -a common commands
  common=(
@COMMON@
  )
  commands=(
@COMMANDS@
  )
  _arguments -C $common '1: :->command' '*:: :->operands' && ret=0
  case $state in
    command) _describe -t commands 'command of tachoctl' commands && ret=0 ;;
    operands)
      case $words[1] in
@CASES@
      esac ;;
  esac
  return ret
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _tachoctl "$@"
else
  compdef _tachoctl tachoctl
fi
)zsh";

// Between single quotes.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Within the brackets of _arguments.
std::string InBrackets(const std::string& text) {
  return absl::StrReplaceAll(text, {{"[", "("}, {"]", ")"}, {":", ";"}});
}

std::string ActionOf(const FlagSpec& flag) {
  switch (ValueKindOf(flag)) {
    case ValueKind::kNothing:
      return "";
    case ValueKind::kChoice:
      return absl::StrCat(":", flag.placeholder, ":(", absl::StrJoin(flag.choices, " "), ")");
    case ValueKind::kFile:
      return ":FILE:_files";
    case ValueKind::kMetric:
      return ":METRIC:_tachoctl_metrics";
    case ValueKind::kOther:
      break;
  }
  return absl::StrCat(":", InBrackets(flag.placeholder), ": ");
}

// One line of _arguments for each form of the flag.
void AddFlag(const FlagSpec& flag, absl::string_view indent, std::string& lines) {
  const std::string rest =
      absl::StrCat("[", InBrackets(FirstSentence(flag.help)), "]", ActionOf(flag));
  const std::string letter = flag.letter == 0 ? "" : std::string{'-', flag.letter};
  const std::string name = "--" + flag.name;
  const std::string others = letter.empty() ? "" : absl::StrCat("(", letter, " ", name, ")");
  const std::string before = flag.repeated ? "*" : others;
  absl::StrAppend(&lines, indent, Quoted(absl::StrCat(before, name, rest)), "\n");
  if (letter.empty()) return;
  absl::StrAppend(&lines, indent, Quoted(absl::StrCat(before, letter, rest)), "\n");
}

std::string OperandLines(const OperandKinds& kinds, absl::string_view indent) {
  std::string lines;
  const auto add = [&](const std::string& text) {
    absl::StrAppend(&lines, indent, Quoted(text), "\n");
  };
  if (kinds.job) add("1:job:_tachoctl_jobs");
  if (!kinds.words.empty()) add(absl::StrCat("1: :(", absl::StrJoin(kinds.words, " "), ")"));
  if (kinds.jobs && kinds.metrics) {
    add("*:job or metric:{_tachoctl_jobs; _tachoctl_metrics}");
  } else if (kinds.jobs) {
    add("*:job:_tachoctl_jobs");
  } else if (kinds.metrics) {
    add("*:metric:_tachoctl_metrics");
  } else if (kinds.files) {
    add("*:file:_files");
  }
  return lines;
}

}  // namespace

std::string ZshScript() {
  std::string common;
  for (const FlagSpec& flag : CommonFlags()) AddFlag(flag, "    ", common);
  std::string commands;
  std::string cases;
  for (const Command& command : Commands()) {
    absl::StrAppend(&commands, "    ",
                    Quoted(absl::StrCat(command.name, ":", InBrackets(command.summary))), "\n");
    absl::StrAppend(&cases, "        ", command.name, ")\n          _arguments $common \\\n");
    std::string lines;
    for (const FlagSpec& flag : command.flags) AddFlag(flag, "            ", lines);
    absl::StrAppend(&lines, OperandLines(KindsOf(command), "            "));
    absl::StrAppend(&cases, absl::StrReplaceAll(lines, {{"\n", " \\\n"}}),
                    "            && ret=0 ;;\n");
  }
  for (std::string* text : {&common, &commands, &cases}) text->pop_back();
  return absl::StrReplaceAll(kZshScript, {{"@VALUE_FLAGS@", absl::StrJoin(FlagsWithValue(), "|")},
                                          {"@COMMON@", common},
                                          {"@COMMANDS@", commands},
                                          {"@CASES@", cases}});
}

}  // namespace tacho::ctl
