// 'completion': prints the script for a shell, here that for bash, and the names that scripts ask
// for.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/shells/completion_scripts.h"
#include "client/ctl/text/text.h"
#include "client/import/formats.h"

namespace tacho::ctl {
namespace {

// Job and metric names come from the collector each time, quietly and with a short patience, so
// that TAB never hangs and never prints an error.
constexpr absl::string_view kScript =
    R"bash(# Completion of tachoctl for bash. Once: source <(tachoctl completion bash)
# For good: tachoctl completion bash > ~/.local/share/bash-completion/completions/tachoctl

_tachoctl_names() {  # Adds the lines on stdin that begin with $1, quoted for the shell.
  local name
  while IFS= read -r name; do
    [[ $name == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
  done
}

_tachoctl_metrics() {  # $1 what is typed, $2 the job as it is typed, $3... where the collector is.
  # As the shell would read it, without running anything in it.
  local cur=$1 job
  job=$(xargs printf '%s' <<< "$2" 2>/dev/null)
  shift 2
  _tachoctl_names "$cur" \
    < <(tachoctl completion metric-names "$@" --timeout 1s -- "$job" 2>/dev/null)
}

_tachoctl() {
  COMPREPLY=()
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local command= job= word skip= flags= i
  local -a where=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ -n $skip ]]; then
      # The shell hands over HOST:PORT as three words.
      [[ $skip == address ]] && where[1]+=$word
      [[ ${COMP_WORDS[i+1]} == : || $word == : ]] || skip=
      continue
    fi
    case $word in
      -a|--address) where=(--address ''); skip=address ;;
      @VALUE_FLAGS@) skip=value ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=$word; elif [[ -z $job ]]; then job=$word; fi ;;
    esac
  done
  case $command:$prev in
@CHOICE_CASES@
    *:--metric)
      _tachoctl_metrics "$cur" "$job" "${where[@]}"
      return ;;
    *:--file|*:-f|*:--tls-ca|*:--tls-cert|*:--tls-key|*:--token-file)
      COMPREPLY=($(compgen -f -- "$cur"))
      return ;;
  esac
  [[ -n $skip ]] && return
  case $command in
@FLAG_CASES@
    *) flags='@COMMON_FLAGS@' ;;
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -z $command || $command == help ]]; then
    COMPREPLY=($(compgen -W '@COMMANDS@' -- "$cur"))
  elif [[ $command == import ]]; then
    if [[ -z $job ]]; then
      COMPREPLY=($(compgen -W '@IMPORT_FORMATS@' -- "$cur"))
    else
      compopt -o filenames
      COMPREPLY=($(compgen -f -- "$cur"))
    fi
  elif [[ $command == completion ]]; then
    [[ -z $job ]] && COMPREPLY=($(compgen -W '@SHELLS@' -- "$cur"))
  elif [[ $command == admin ]]; then
    [[ -z $job ]] && COMPREPLY=($(compgen -W '@ADMIN_ACTIONS@' -- "$cur"))
  elif [[ $command == @NONE@ || $command == jobs && -n $job ]]; then
    return
  elif [[ -z $job ]]; then
    _tachoctl_names "$cur" < <(tachoctl completion job-names "${where[@]}" --timeout 1s 2>/dev/null)
  else
    case $command in
      @MORE_JOBS@)
        _tachoctl_names "$cur" \
          < <(tachoctl completion job-names "${where[@]}" --timeout 1s 2>/dev/null) ;;
    esac
    case $command in
      @METRICS@) _tachoctl_metrics "$cur" "$job" "${where[@]}" ;;
    esac
  fi
}
complete -F _tachoctl tachoctl
)bash";

std::string FlagNames(const std::vector<FlagSpec>& flags) {
  std::string names;
  for (const FlagSpec& flag : flags) {
    absl::StrAppend(&names, names.empty() ? "" : " ", "--", flag.name);
  }
  return names;
}

std::string Words(const Command& command) { return absl::StrJoin(KindsOf(command).words, " "); }

// "    query:--by) … ;;" for every flag that takes one of a few words.
void AddChoiceCases(const std::string& command, const std::vector<FlagSpec>& flags,
                    std::string& cases) {
  for (const FlagSpec& flag : flags) {
    if (flag.choices.empty()) continue;
    std::string pattern = absl::StrCat(command, ":--", flag.name);
    if (flag.letter != 0) absl::StrAppend(&pattern, "|", command, ":-", std::string{flag.letter});
    absl::StrAppend(&cases, cases.empty() ? "" : "\n", "    ", pattern,
                    ") COMPREPLY=($(compgen -W '", absl::StrJoin(flag.choices, " "),
                    "' -- \"$cur\")); return ;;");
  }
}

// "plot|compare": the commands whose operands are of a kind.
template <typename Is>
std::string CommandsWhose(const Is& is, const char* separator) {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (is(KindsOf(command))) names.push_back(command.name);
  }
  return absl::StrJoin(names, separator);
}

}  // namespace

OperandKinds KindsOf(const Command& command) {
  const std::string& text = command.operands;
  OperandKinds kinds;
  // A pattern of jobs is mostly begun with a name; agents' hosts have none to offer.
  kinds.job = absl::StrContains(text, "JOB") || absl::StartsWith(text, "A[@") ||
              (text == "[PATTERN]" && command.name == "jobs");
  kinds.jobs = absl::StrContains(text, "@ATTEMPT]...") || absl::StrContains(text, " B[@");
  kinds.metrics = absl::StrContains(text, "METRIC");
  kinds.files = absl::StrContains(text, "PATH");
  if (text == "[COMMAND]") {
    for (const Command& other : Commands()) kinds.words.push_back(other.name);
  } else if (absl::StartsWith(text, "FORMAT")) {
    kinds.words = importer::FormatNames();
    kinds.words.insert(kinds.words.begin(), "auto");
  } else if (absl::StartsWith(text, "ACTION")) {
    kinds.words = AdminActions();
  } else if (command.name == "completion") {
    kinds.words = absl::StrSplit(text, '|');
  }
  return kinds;
}

ValueKind ValueKindOf(const FlagSpec& flag) {
  if (flag.placeholder.empty()) return ValueKind::kNothing;
  if (!flag.choices.empty()) return ValueKind::kChoice;
  if (flag.placeholder == "FILE") return ValueKind::kFile;
  return flag.name == "metric" ? ValueKind::kMetric : ValueKind::kOther;
}

std::vector<std::string> FlagsWithValue() {
  std::set<std::string> names;
  const auto add = [&](const std::vector<FlagSpec>& flags) {
    for (const FlagSpec& flag : flags) {
      if (flag.placeholder.empty() || flag.name == "address") continue;
      if (flag.letter != 0) names.insert(std::string{'-', flag.letter});
      names.insert("--" + flag.name);
    }
  };
  add(CommonFlags());
  for (const Command& command : Commands()) add(command.flags);
  return {names.begin(), names.end()};
}

std::string FirstSentence(const std::string& help) {
  const size_t end = help.find(". ");
  std::string text = help.substr(0, end);
  if (end == std::string::npos && absl::EndsWith(text, ".")) text.pop_back();
  return text;
}

std::string BashScript() {
  std::string commands;
  std::string cases;
  std::string choices;
  AddChoiceCases("*", CommonFlags(), choices);
  const std::string common = FlagNames(CommonFlags());
  for (const Command& command : Commands()) {
    absl::StrAppend(&commands, commands.empty() ? "" : " ", command.name);
    absl::StrAppend(&cases, cases.empty() ? "" : "\n", "    ", command.name, ") flags='",
                    FlagNames(command.flags), command.flags.empty() ? "" : " ", common, "' ;;");
    AddChoiceCases(command.name, command.flags, choices);
  }
  const std::string none =
      CommandsWhose([](const OperandKinds& kinds) { return !kinds.job && kinds.words.empty(); },
                    " || $command == ");
  const auto takes_jobs = [](const OperandKinds& kinds) { return kinds.jobs; };
  const auto takes_metrics = [](const OperandKinds& kinds) { return kinds.metrics; };
  return absl::StrReplaceAll(kScript, {{"@NONE@", none},
                                       {"@MORE_JOBS@", CommandsWhose(takes_jobs, "|")},
                                       {"@METRICS@", CommandsWhose(takes_metrics, "|")},
                                       {"@VALUE_FLAGS@", absl::StrJoin(FlagsWithValue(), "|")},
                                       {"@CHOICE_CASES@", choices},
                                       {"@FLAG_CASES@", cases},
                                       {"@COMMON_FLAGS@", common},
                                       {"@IMPORT_FORMATS@", Words(*FindCommand("import"))},
                                       {"@SHELLS@", Words(*FindCommand("completion"))},
                                       {"@ADMIN_ACTIONS@", Words(*FindCommand("admin"))},
                                       {"@COMMANDS@", commands}});
}

namespace {

// A name with a line break in it cannot be typed anyway.
void PrintName(std::ostream& out, const std::string& name) { out << Printable(name) << '\n'; }

int PrintJobNames(const Invocation& invocation) {
  constexpr size_t kAtMost = 1000;
  QueryClient client = Connect(invocation);
  const auto jobs = client.ListJobs({}, kAtMost);
  if (!jobs.ok()) return CallError(invocation, client, jobs.status());
  for (const v1::Job& job : *jobs) PrintName(*invocation.env.out, job.name());
  return kOk;
}

int PrintMetricNames(const Invocation& invocation, const std::string& job) {
  QueryClient client = Connect(invocation);
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  for (const v1::Metric& metric : answer->metrics()) {
    PrintName(*invocation.env.out, metric.name());
  }
  return kOk;
}

int RunCompletion(const Invocation& invocation) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  for (const auto& [shell, script] : {std::pair{"bash", &BashScript}, std::pair{"zsh", &ZshScript},
                                      std::pair{"fish", &FishScript}}) {
    if (operands[0] != shell) continue;
    *invocation.env.out << script();
    return kOk;
  }
  if (operands[0] == "job-names") return PrintJobNames(invocation);
  if (operands[0] == "metric-names" && operands.size() == 2) {
    return PrintMetricNames(invocation, operands[1]);
  }
  return UsageError(invocation.env, "completion",
                    absl::StrCat("'", operands[0], "': expected bash, zsh or fish"));
}

}  // namespace

Command CompletionCommand() {
  return {.name = "completion",
          .operands = "bash|zsh|fish",
          .summary = "Print a shell's script that completes commands, flags, jobs and metrics",
          .details = R"(Examples:
  source <(tachoctl completion bash)
  tachoctl completion bash > ~/.local/share/bash-completion/completions/tachoctl
  tachoctl completion zsh > ~/.zfunc/_tachoctl    # with fpath+=~/.zfunc before compinit
  tachoctl completion fish > ~/.config/fish/completions/tachoctl.fish

An installed tachoctl brings these files along. The script asks 'tachoctl completion job-names'
and 'tachoctl completion metric-names JOB', which print one name a line.)",
          .flags = {},
          .min_operands = 1,
          .max_operands = 2,
          .run = RunCompletion};
}

}  // namespace tacho::ctl
