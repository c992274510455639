// 'tag', 'group', 'note': what people say of a job. Each shows what there is, or changes it first.
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

constexpr char kMarksJsonHelp[] =
    R"(JSON: {"job", "tags": [], "group" or null, "note" or null}: what the job has now.)";
constexpr char kMarksRights[] =
    R"(If the collector asks for tokens, a change needs one with the role write and the right to the job.)";

void WriteMarksJson(std::ostream& out, const std::string& job, const v1::JobMarks& marks) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", job);
    json.Field("tags", marks.tags());
    json.Field("group", MaybeText(marks.group()));
    json.Field("note", MaybeText(marks.note()));
  });
}

void PrintMarks(const Invocation& invocation, const std::string& job, const v1::JobMarks& marks) {
  std::ostream& out = *invocation.env.out;
  switch (invocation.common.format) {
    case Format::kJson:
      return WriteMarksJson(out, job, marks);
    case Format::kCsv:
      out << CsvLine({"job", "tags", "group", "note"})
          << CsvLine({job, absl::StrJoin(marks.tags(), ","), marks.group(), marks.note()});
      return;
    case Format::kTable:
      break;
  }
  const auto line = [&](const char* name, const std::string& text) {
    out << name << (text.empty() ? std::string("none") : Printable(text)) << '\n';
  };
  line("job:   ", job);
  line("tags:  ", absl::StrJoin(marks.tags(), ", "));
  line("group: ", marks.group());
  line("note:  ", marks.note());
}

int ShowMarks(const Invocation& invocation, QueryClient& client, const std::string& job) {
  const auto answer = client.GetJob(job);
  if (!answer.ok()) return JobCallError(invocation, client, job, answer.status());
  PrintMarks(invocation, job, answer->job().marks());
  return kOk;
}

int ChangeAndShow(const Invocation& invocation, const v1::ChangeMarksRequest& request) {
  QueryClient client = Connect(invocation);
  const auto answer = client.ChangeMarks(request);
  if (!answer.ok()) return JobCallError(invocation, client, request.job(), answer.status());
  if (answer->has_marks()) {
    PrintMarks(invocation, request.job(), answer->marks());
  } else {
    *invocation.env.err << "tachoctl: changed; your token may not read what the job has now\n";
  }
  return kOk;
}

int RunTag(const Invocation& invocation) {
  const std::vector<std::string>& operands = invocation.args.positionals();
  const std::vector<std::string> removed = invocation.args.GetAll("remove");
  v1::ChangeMarksRequest request;
  request.set_job(operands[0]);
  request.mutable_add_tags()->Assign(operands.begin() + 1, operands.end());
  request.mutable_remove_tags()->Assign(removed.begin(), removed.end());
  for (const std::string& tag : request.add_tags()) {
    for (const std::string& gone : removed) {
      if (tag != gone) continue;
      return UsageError(invocation.env, "tag",
                        absl::StrCat("'", tag, "' is to be added and removed: give one"));
    }
  }
  if (operands.size() > 1 || !removed.empty()) return ChangeAndShow(invocation, request);
  QueryClient client = Connect(invocation);
  return ShowMarks(invocation, client, operands[0]);
}

// The new value of a group or note; nullopt: show what there is.
absl::StatusOr<std::optional<std::string>> NewText(const Invocation& invocation) {
  const bool given = invocation.args.positionals().size() > 1;
  if (invocation.args.Has("remove")) {
    if (given) return absl::InvalidArgumentError("a new value and --remove: give one");
    return std::optional<std::string>("");
  }
  if (!given) return std::optional<std::string>();
  if (invocation.Positional(1).empty()) {
    return absl::InvalidArgumentError("the value is empty; to remove what there is: --remove");
  }
  return std::optional<std::string>(invocation.Positional(1));
}

template <typename Set>
int RunText(const Invocation& invocation, const char* command, const Set& set) {
  const auto text = NewText(invocation);
  if (!text.ok()) return UsageError(invocation.env, command, text.status().message());
  if (!text->has_value()) {
    QueryClient client = Connect(invocation);
    return ShowMarks(invocation, client, invocation.Positional(0));
  }
  v1::ChangeMarksRequest request;
  request.set_job(invocation.Positional(0));
  set(**text, request);
  return ChangeAndShow(invocation, request);
}

int RunGroup(const Invocation& invocation) {
  return RunText(invocation, "group", [](const std::string& text, v1::ChangeMarksRequest& request) {
    request.set_group(text);
  });
}

int RunNote(const Invocation& invocation) {
  return RunText(invocation, "note", [](const std::string& text, v1::ChangeMarksRequest& request) {
    request.set_note(text);
  });
}

}  // namespace

Command TagCommand() {
  return {
      .name = "tag",
      .group = CommandGroup::kMark,
      .operands = "JOB [TAG...]",
      .summary = "Add tags to a job, remove them, or show them",
      .details = absl::StrCat(
          R"(A tag has at most 64 bytes and no spaces or commas; a job has at most 64 tags. Tags belong to the job
and stay when it restarts. A trainer can set them too: as the attribute tag.NAME, or in Python with
tacho.init(tags=[…]).

)",
          kMarksRights, R"(

Examples:
  tachoctl tag bert-base baseline good-seed
  tachoctl tag bert-base --remove good-seed
  tachoctl tag bert-base                       shows what there is
  tachoctl jobs --tag baseline

)",
          kMarksJsonHelp),
      .flags = {{.name = "remove",
                 .placeholder = "TAG",
                 .help = "Remove this tag. Repeat for more.",
                 .repeated = true}},
      .min_operands = 1,
      .max_operands = kAnyNumber,
      .run = RunTag};
}

Command GroupCommand() {
  return {
      .name = "group",
      .group = CommandGroup::kMark,
      .operands = "JOB [NAME]",
      .summary = "Put a job into a group of runs, such as a sweep, or show its group",
      .details = absl::StrCat(
          R"(A job is in one group at most; its name has at most 256 bytes. A trainer sets it with TACHO_GROUP, with
the option `group` of the recorder, or in Python with tacho.init(group=…). If a restarted trainer sets
one again, that one counts.

)",
          kMarksRights, R"(

Examples:
  tachoctl group lr-0.1 lr-sweep
  tachoctl group lr-0.1 --remove
  tachoctl jobs --group lr-sweep

)",
          kMarksJsonHelp),
      .flags = {{.name = "remove", .help = "Take the job out of its group."}},
      .min_operands = 1,
      .max_operands = 2,
      .run = RunGroup};
}

Command NoteCommand() {
  return {
      .name = "note",
      .group = CommandGroup::kMark,
      .operands = "JOB [TEXT]",
      .summary = "Write a note about a job, or show it",
      .details = absl::StrCat(
          R"(A new note replaces the old one. It has at most 4,096 bytes. 'tachoctl status JOB' shows it.

)",
          kMarksRights, R"(

Examples:
  tachoctl note bert-base 'the run of the paper; do not delete'
  tachoctl note bert-base --remove

)",
          kMarksJsonHelp),
      .flags = {{.name = "remove", .help = "Remove the note."}},
      .min_operands = 1,
      .max_operands = 2,
      .run = RunNote};
}

}  // namespace tacho::ctl
