// The manual page of tachoctl, made from the commands' descriptions like the help.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/troff.h"

namespace tacho::ctl {
namespace {

void PrintManualFlags(const std::vector<FlagSpec>& flags, std::ostream& out) {
  for (const FlagSpec& flag : flags) {
    out << ".TP\n";
    if (flag.letter != 0) out << "\\fB\\-" << flag.letter << "\\fR, ";
    out << "\\fB" << Troff("--" + flag.name) << "\\fR";
    if (!flag.placeholder.empty()) out << " \\fI" << Troff(flag.placeholder) << "\\fR";
    out << '\n' << Troff(flag.help) << '\n';
  }
}

// Paragraphs with an indented line, such as examples, are printed as they stand.
void PrintManualDetails(const std::string& details, std::ostream& out) {
  for (const auto& piece : absl::StrSplit(details, "\n\n", absl::SkipWhitespace())) {
    const std::string paragraph(piece);
    out << ".PP\n";
    if (absl::StrContains(paragraph, "\n  ")) {
      out << TroffLines(paragraph);
      continue;
    }
    for (const auto& line : absl::StrSplit(paragraph, '\n')) out << Troff(line) << '\n';
  }
}

void PrintManualCommand(const Command& command, std::ostream& out) {
  out << ".SS "
      << Troff(absl::StrCat(command.name, command.operands.empty() ? "" : " ", command.operands))
      << '\n'
      << Troff(command.summary) << ".\n";
  PrintManualDetails(command.details, out);
  PrintManualFlags(command.flags, out);
}

}  // namespace

void PrintManual(std::ostream& out) {
  out << TroffTitle("tachoctl", 1)
      << ".SH NAME\ntachoctl \\- asks a Tachograph collector about training jobs\n"
         ".SH SYNOPSIS\n.B tachoctl\n\\fICOMMAND\\fR [\\fIOPERANDS\\fR] [\\fIFLAGS\\fR]\n"
         ".SH DESCRIPTION\ntachoctl lists training jobs, shows how they are doing and what they "
         "recorded, compares runs, and operates the collector. \\fBtachoctl help\\fR lists the "
         "commands.\n"
         ".SH FLAGS OF EVERY COMMAND\n";
  PrintManualFlags(CommonFlags(), out);
  const Command* before = nullptr;
  for (const Command& command : Commands()) {
    if (before == nullptr || before->group != command.group) {
      out << ".SH COMMANDS: " << Troff(GroupTitle(command.group)) << '\n';
    }
    PrintManualCommand(command, out);
    before = &command;
  }
  out << ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : ExitCodes()) {
    out << ".TP\n" << code << '\n' << Troff(meaning) << '\n';
  }
  out << ".SH SEE ALSO\n.BR tacho\\-collector (8),\n.BR tacho\\-agent (8)\n";
}

}  // namespace tacho::ctl
