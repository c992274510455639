// Splits a help text into paragraphs, which say by their first word what they are, and prints each
// in the section of the page where people look for it.
#include "client/ctl/text/troff.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tacho::ctl {
namespace {

size_t Indent(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

// The sections of a page in their order.
struct PageParts {
  std::string synopsis;
  std::string description;
  std::string options;
  std::string signals;
  std::string exit_status;
  std::string examples;
};

// "Exit status: 0 success" as {"Exit status", "0 success"}; an empty heading for a plain paragraph.
std::pair<std::string, std::string> SplitHeading(const std::string& paragraph) {
  for (const char* heading : {"Usage", "Signals", "Exit status", "Examples", "Example"}) {
    absl::string_view rest = paragraph;
    if (absl::ConsumePrefix(&rest, absl::StrCat(heading, ":"))) {
      if (!absl::ConsumePrefix(&rest, " ")) absl::ConsumePrefix(&rest, "\n");
      return {heading, std::string(rest)};
    }
  }
  return {"", paragraph};
}

std::string Joined(absl::string_view paragraph) {
  std::vector<std::string> words;
  for (const auto& line : absl::StrSplit(paragraph, '\n')) {
    words.emplace_back(absl::StripAsciiWhitespace(line));
  }
  return absl::StrJoin(words, " ");
}

// "  --grpc ADDRESS  Listen here" and the lines below it, which are indented further.
std::string OptionItems(const std::string& paragraph) {
  std::string items;
  for (const auto& piece : absl::StrSplit(paragraph, '\n')) {
    const absl::string_view line = piece;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    const bool begins = absl::StartsWith(text, "-") && Indent(line) <= 2;
    const size_t gap = begins ? text.find("  ") : absl::string_view::npos;
    if (!begins) {
      absl::StrAppend(&items, Troff(text), "\n");
    } else if (gap == absl::string_view::npos) {
      absl::StrAppend(&items, ".TP\n\\fB", Troff(text), "\\fR\n");
    } else {
      absl::StrAppend(&items, ".TP\n\\fB", Troff(text.substr(0, gap)), "\\fR\n",
                      Troff(absl::StripAsciiWhitespace(text.substr(gap))), "\n");
    }
  }
  return items;
}

void AddParagraph(const std::string& paragraph, PageParts* page) {
  const auto [heading, body] = SplitHeading(paragraph);
  const auto add = [](absl::string_view text, std::string* section) {
    absl::StrAppend(section, section->empty() ? "" : ".PP\n", text);
  };
  if (heading == "Usage") {
    for (const auto& line : absl::StrSplit(body, '\n')) {
      add(absl::StrCat(Troff(absl::StripAsciiWhitespace(line)), "\n"), &page->synopsis);
    }
  } else if (heading == "Signals") {
    add(absl::StrCat(Troff(Joined(body)), "\n"), &page->signals);
  } else if (heading == "Exit status") {
    add(absl::StrCat(Troff(Joined(body)), "\n"), &page->exit_status);
  } else if (!heading.empty()) {
    add(TroffLines(absl::StripTrailingAsciiWhitespace(body)), &page->examples);
  } else if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(body), "-")) {
    absl::StrAppend(&page->options, OptionItems(body));
  } else {
    add(absl::StrCat(Troff(Joined(body)), "\n"), &page->description);
  }
}

// "records training jobs": what the first sentence says after the name.
std::string Purpose(absl::string_view name, const std::string& help) {
  const std::string paragraph = Joined(help.substr(0, help.find("\n\n")));
  absl::string_view text = paragraph;
  text = text.substr(0, text.find(". "));
  absl::ConsumePrefix(&text, absl::StrCat(name, " "));
  absl::ConsumeSuffix(&text, ".");
  return std::string(text);
}

PageParts PartsOf(const std::string& help) {
  PageParts parts;
  for (const auto& paragraph : absl::StrSplit(help, "\n\n", absl::SkipWhitespace())) {
    AddParagraph(std::string(absl::StripTrailingAsciiWhitespace(paragraph)), &parts);
  }
  return parts;
}

// The second word: "diagnose" of "tacho-agent diagnose checks …".
std::string CommandOf(const std::string& help) {
  const std::vector<std::string> words = absl::StrSplit(help, absl::MaxSplits(' ', 2));
  return words.size() > 1 ? words[1] : "";
}

std::string Section(absl::string_view title, const std::string& text) {
  return text.empty() ? "" : absl::StrCat(".SH ", title, "\n", text);
}

}  // namespace

std::string Troff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) escaped.insert(0, "\\&");
  return escaped;
}

std::string TroffLines(absl::string_view lines) {
  std::string text = ".nf\n";
  for (const auto& line : absl::StrSplit(lines, '\n')) {
    absl::StrAppend(&text, line.empty() ? "\\&" : Troff(line), "\n");
  }
  return absl::StrCat(text, ".fi\n");
}

// Without a date, so that two builds of a version are the same.
std::string TroffTitle(absl::string_view name, int section) {
  return absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " ", section, " \"\" \"Tachograph ",
                      TACHO_VERSION, "\" \"Tachograph\"\n");
}

std::string HelpPage(absl::string_view name, int section, const std::vector<std::string>& helps) {
  PageParts page;
  std::string commands;
  for (const std::string& help : helps) {
    PageParts part = PartsOf(help);
    if (&help == &helps.front()) {
      page = std::move(part);
      continue;
    }
    absl::StrAppend(&page.synopsis, ".PP\n", part.synopsis);
    absl::StrAppend(&commands, Section(absl::AsciiStrToUpper(CommandOf(help)), part.description),
                    part.options, ".PP\nExit status: ", part.exit_status);
  }
  return absl::StrCat(TroffTitle(name, section), ".SH NAME\n", name, " \\- ",
                      Troff(helps.empty() ? "" : Purpose(name, helps[0])), "\n",
                      Section("SYNOPSIS", page.synopsis), Section("DESCRIPTION", page.description),
                      Section("OPTIONS", page.options), Section("SIGNALS", page.signals),
                      Section("EXIT STATUS", page.exit_status), Section("EXAMPLES", page.examples),
                      commands,
                      ".SH SEE ALSO\n.BR tachoctl (1),\n.BR tacho\\-collector (8),\n.BR "
                      "tacho\\-agent (8)\n");
}

}  // namespace tacho::ctl
