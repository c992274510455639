#include "client/ctl/requests/stack_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

// A group of more tasks is told by its numbers alone.
constexpr int kMostNamed = 8;

const char* OriginName(v1::StackOrigin origin) {
  switch (origin) {
    case v1::STACK_ORIGIN_PYTHON:
      return "python";
    case v1::STACK_ORIGIN_COMMAND:
      return "command";
    case v1::STACK_ORIGIN_KERNEL:
      return "kernel";
    default:
      return "unknown";
  }
}

std::string TasksText(const v1::StackGroup& group) {
  std::string text;
  for (int i = 0, last = 0; i < group.members_size(); i = last + 1) {
    last = i;
    while (last + 1 < group.members_size() &&
           group.members(last + 1).task() == group.members(last).task() + 1) {
      ++last;
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", group.members(i).task());
    if (last > i) absl::StrAppend(&text, "-", group.members(last).task());
  }
  return text;
}

std::string StepsText(const v1::StackGroup& group) {
  int64_t least = INT64_MAX;
  int64_t most = INT64_MIN;
  for (const v1::StackMember& member : group.members()) {
    if (!member.has_step()) continue;
    least = std::min(least, member.step());
    most = std::max(most, member.step());
  }
  if (least > most) return "";
  return least == most ? absl::StrCat("step ", least) : absl::StrCat("steps ", least, "-", most);
}

// "64 checkpointing"
std::string PhasesText(const v1::StackGroup& group) {
  std::map<std::string, int> phases;
  for (const v1::StackMember& member : group.members()) {
    if (!member.phase().empty()) ++phases[member.phase()];
  }
  std::vector<std::string> words;
  words.reserve(phases.size());
  for (const auto& [phase, tasks] : phases) words.push_back(absl::StrCat(tasks, " ", phase));
  return absl::StrJoin(words, ", ");
}

void PrintMember(std::ostream& out, const v1::StackMember& member) {
  std::vector<std::string> words;
  if (member.has_step()) words.push_back(absl::StrCat("step ", member.step()));
  if (!member.phase().empty()) words.push_back(member.phase());
  if (member.line() > 0) words.push_back(absl::StrCat("line ", member.line()));
  if (!member.state().empty()) words.push_back(absl::StrCat("state ", member.state()));
  if (!member.waits_in().empty()) words.push_back(absl::StrCat("waits in ", member.waits_in()));
  if (!member.trouble().empty())
    words.push_back(absl::StrCat("no Python stack: ", member.trouble()));
  out << "  task " << member.task() << " on " << Printable(member.host()) << ", pid "
      << member.pid() << ": " << Printable(absl::StrJoin(words, ", ")) << '\n';
}

void PrintGroup(std::ostream& out, const v1::StackGroup& group, bool largest) {
  std::vector<std::string> words = {OriginName(group.origin())};
  for (const std::string& text : {StepsText(group), PhasesText(group)}) {
    if (!text.empty()) words.push_back(text);
  }
  out << '\n'
      << Count(static_cast<uint64_t>(group.members_size()), "task")
      << (largest ? "" : " unlike most") << ": " << TasksText(group) << " ("
      << Printable(absl::StrJoin(words, "; ")) << ")\n";
  if (group.members_size() <= kMostNamed) {
    for (const v1::StackMember& member : group.members()) PrintMember(out, member);
  }
  for (const std::string& frame : group.frames()) out << "    " << Printable(frame) << '\n';
}

// group.1.tasks, group.1.stack, group.2.tasks, …
std::vector<std::pair<std::string, std::string>> GroupsOf(const v1::RecordedEvent& event) {
  std::vector<std::pair<std::string, std::string>> groups;
  for (int number = 1;; ++number) {
    const auto tasks = event.fields().find(absl::StrCat("group.", number, ".tasks"));
    const auto stack = event.fields().find(absl::StrCat("group.", number, ".stack"));
    if (tasks == event.fields().end() || stack == event.fields().end()) return groups;
    groups.emplace_back(tasks->second, stack->second);
  }
}

std::string FieldOf(const v1::RecordedEvent& event, const char* name) {
  const auto found = event.fields().find(name);
  return found == event.fields().end() ? "" : found->second;
}

}  // namespace

void PrintStacks(const Environment& env, const v1::TakeStacksResponse& stacks) {
  std::ostream& out = *env.out;
  uint64_t tasks = 0;
  for (const v1::StackGroup& group : stacks.groups()) {
    tasks += static_cast<uint64_t>(group.members_size());
  }
  out << Printable(stacks.job()) << ", attempt " << stacks.attempt() << ", "
      << ReadableTime(stacks.taken_unix_ns(), env.zone) << ": stacks of " << tasks << " of "
      << Count(tasks + static_cast<uint64_t>(stacks.absent_size()), "task") << ", "
      << Count(static_cast<uint64_t>(stacks.groups_size()), "kind") << '\n';
  for (int i = 0; i < stacks.groups_size(); ++i) PrintGroup(out, stacks.groups(i), i == 0);
  if (stacks.absent().empty()) return;
  out << "\nNo stack:\n";
  for (const v1::AbsentTask& absent : stacks.absent()) {
    out << "  task " << absent.task() << " on " << Printable(absent.host()) << ": "
        << Printable(absent.reason()) << '\n';
  }
}

void WriteStacksJson(std::ostream& out, const v1::TakeStacksResponse& stacks,
                     const std::vector<CoreGroup>& cores) {
  JsonWriter json(out);
  json.Object([&] {
    json.Field("job", stacks.job());
    json.Field("attempt", uint64_t{stacks.attempt()});
    json.TimeFields("taken", stacks.taken_unix_ns());
    json.Objects("groups", stacks.groups(), [&](const v1::StackGroup& group) {
      json.Field("tasks", TasksText(group));
      json.Field("origin", OriginName(group.origin()));
      json.Field("frames", group.frames());
      json.Objects("members", group.members(), [&](const v1::StackMember& member) {
        json.Field("task", uint64_t{member.task()});
        json.Field("host", member.host());
        json.Field("pid", uint64_t{member.pid()});
        json.Field("step", Maybe(member.has_step(), int64_t{member.step()}));
        json.Field("phase", MaybeText(member.phase()));
        json.Field("line", Maybe(member.line() > 0, uint64_t{member.line()}));
        json.Field("state", MaybeText(member.state()));
        json.Field("waits_in", MaybeText(member.waits_in()));
        json.Field("trouble", MaybeText(member.trouble()));
      });
    });
    json.Objects("absent", stacks.absent(), [&](const v1::AbsentTask& absent) {
      json.Field("task", uint64_t{absent.task()});
      json.Field("host", absent.host());
      json.Field("reason", absent.reason());
    });
    WriteCores(cores, &json);
  });
}

void WriteStacksCsv(std::ostream& out, const v1::TakeStacksResponse& stacks) {
  out << CsvLine({"task", "host", "pid", "group", "origin", "step", "phase", "state", "waits_in",
                  "frame", "line", "trouble"});
  int number = 0;
  for (const v1::StackGroup& group : stacks.groups()) {
    ++number;
    for (const v1::StackMember& member : group.members()) {
      out << CsvLine({absl::StrCat(member.task()), member.host(), absl::StrCat(member.pid()),
                      absl::StrCat(number), OriginName(group.origin()),
                      member.has_step() ? absl::StrCat(member.step()) : "", member.phase(),
                      member.state(), member.waits_in(),
                      group.frames().empty() ? "" : group.frames(0),
                      member.line() > 0 ? absl::StrCat(member.line()) : "", member.trouble()});
    }
  }
  for (const v1::AbsentTask& absent : stacks.absent()) {
    out << CsvLine({absl::StrCat(absent.task()), absent.host(), "", "", "", "", "", "", "", "", "",
                    absent.reason()});
  }
}

void PrintStacksEvent(const Environment& env, const v1::RecordedEvent& event) {
  std::ostream& out = *env.out;
  out << ReadableTime(event.time_unix_ns(), env.zone) << ", " << Printable(FieldOf(event, "cause"))
      << ": " << Printable(event.message()) << '\n';
  for (const auto& [tasks, stack] : GroupsOf(event)) {
    out << "\ntasks " << Printable(tasks) << '\n';
    for (const absl::string_view frame : absl::StrSplit(stack, " < ")) {
      out << "    " << Printable(frame) << '\n';
    }
  }
}

void WriteStacksEventJson(std::ostream& out, const v1::RecordedEvent& event) {
  JsonWriter json(out);
  json.Object([&] {
    json.TimeFields("taken", event.time_unix_ns());
    json.Field("attempt", uint64_t{event.source().attempt()});
    json.Field("cause", FieldOf(event, "cause"));
    json.Field("message", event.message());
    json.Objects("groups", GroupsOf(event), [&](const auto& group) {
      json.Field("tasks", group.first);
      const std::vector<std::string> frames = absl::StrSplit(group.second, " < ");
      json.Field("frames", frames);
    });
  });
}

}  // namespace tacho::ctl
