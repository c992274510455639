#include "server/requests/stack_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace tacho::server::requests {
namespace {

constexpr size_t kMaxTextBytes = 256;    // Of a name that an agent sends.
constexpr size_t kMaxEventBytes = 1024;  // Of a field, and of the message (ingest.proto).
constexpr int kMaxEventGroups = 12;      // Two fields each, of 32.
constexpr int kMaxTasksNamed = 8;        // In a message.

// Text of an agent's, for people.
std::string Clean(absl::string_view untrusted) {
  std::string text(untrusted.substr(0, kMaxTextBytes));
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  // A character may have been cut.
  while (untrusted.size() > kMaxTextBytes && !text.empty() &&
         !absl::ascii_isascii(static_cast<unsigned char>(text.back()))) {
    text.pop_back();
  }
  return text;
}

std::string FrameText(const v1::StackFrame& frame) {
  if (frame.file().empty()) return Clean(frame.function());
  absl::string_view file = frame.file();
  const size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::StrCat(Clean(file), ":", Clean(frame.function()));
}

std::vector<std::string> FramesOf(const v1::TaskStacks& stacks) {
  std::vector<std::string> frames;
  const int count = std::min(stacks.main_size(), kMaxGroupFrames);
  for (int i = 0; i < count; ++i) frames.push_back(FrameText(stacks.main(i)));
  if (!frames.empty()) return frames;
  if (!stacks.waits_in().empty()) return {Clean(stacks.waits_in())};
  return {absl::StrCat("(no stack; state ", Clean(stacks.state()), ")")};
}

v1::StackMember MemberOf(const TaskOnHost& task) {
  v1::StackMember member;
  member.set_task(task.task);
  member.set_host(task.host);
  member.set_pid(task.untrusted->pid());
  member.set_waits_in(Clean(task.untrusted->waits_in()));
  member.set_state(Clean(task.untrusted->state()));
  if (task.untrusted->main_size() > 0) member.set_line(task.untrusted->main(0).line());
  member.set_trouble(Clean(task.untrusted->trouble()));
  if (task.step.has_value()) member.set_step(*task.step);
  member.set_phase(task.phase);
  return member;
}

bool IsBefore(const v1::StackGroup& a, const v1::StackGroup& b) {
  return std::pair(-a.members_size(), a.members(0).task()) <
         std::pair(-b.members_size(), b.members(0).task());
}

}  // namespace

std::vector<v1::StackGroup> GroupStacks(const std::vector<TaskOnHost>& tasks) {
  std::map<std::pair<v1::StackOrigin, std::vector<std::string>>, v1::StackGroup> by_stack;
  for (const TaskOnHost& task : tasks) {
    std::vector<std::string> frames = FramesOf(*task.untrusted);
    const v1::StackOrigin origin = task.untrusted->origin();
    v1::StackGroup& group = by_stack[{origin, frames}];
    if (group.members_size() == 0) {
      group.set_origin(origin);
      group.mutable_frames()->Assign(frames.begin(), frames.end());
    }
    *group.add_members() = MemberOf(task);
  }
  std::vector<v1::StackGroup> groups;
  for (auto& [stack, group] : by_stack) {
    std::sort(group.mutable_members()->begin(), group.mutable_members()->end(),
              [](const auto& a, const auto& b) { return a.task() < b.task(); });
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), IsBefore);
  if (groups.size() <= kMaxGroups) return groups;
  v1::StackGroup rest;
  rest.add_frames("(various stacks)");
  for (size_t i = kMaxGroups - 1; i < groups.size(); ++i) {
    rest.mutable_members()->MergeFrom(groups[i].members());
  }
  groups.resize(kMaxGroups - 1);
  groups.push_back(std::move(rest));
  return groups;
}

std::string TaskRanges(const v1::StackGroup& group, size_t max_bytes) {
  std::string text;
  const auto& members = group.members();
  for (int first = 0, last = 0; first < members.size(); first = last + 1) {
    last = first;
    while (last + 1 < members.size() && members[last + 1].task() == members[last].task() + 1) {
      ++last;
    }
    std::string range = absl::StrCat(text.empty() ? "" : ",", members[first].task());
    if (last > first) absl::StrAppend(&range, "-", members[last].task());
    constexpr absl::string_view kMore = ",…";
    if (text.size() + range.size() + kMore.size() > max_bytes) return absl::StrCat(text, kMore);
    text += range;
  }
  return text;
}

storage::Event ToEvent(const v1::TakeStacksResponse& stacks, const std::string& cause) {
  storage::Event event;
  event.source.job = stacks.job();
  event.source.attempt = stacks.attempt();
  event.time_ns = stacks.taken_unix_ns();
  event.kind = kStacksTaken;
  int tasks = 0;
  std::vector<std::string> odd;
  for (const v1::StackGroup& group : stacks.groups()) tasks += group.members_size();
  for (int i = 1; i < stacks.groups_size() && static_cast<int>(odd.size()) < kMaxTasksNamed; ++i) {
    for (const v1::StackMember& member : stacks.groups(i).members()) {
      if (static_cast<int>(odd.size()) == kMaxTasksNamed) break;
      odd.push_back(absl::StrCat(member.task(), " on ", member.host()));
    }
  }
  event.message =
      absl::StrCat("stacks of ", tasks, " of ", tasks + stacks.absent_size(), " tasks are of ",
                   stacks.groups_size(), stacks.groups_size() == 1 ? " kind" : " kinds");
  if (!odd.empty()) {
    absl::StrAppend(&event.message, "; unlike most: ", absl::StrJoin(odd, ", "));
  }
  event.message.resize(std::min(event.message.size(), kMaxEventBytes));
  event.fields["cause"] = cause;
  event.fields["tasks"] = absl::StrCat(tasks);
  event.fields["absent"] = absl::StrCat(stacks.absent_size());
  event.fields["groups"] = absl::StrCat(stacks.groups_size());
  for (int i = 0; i < std::min(stacks.groups_size(), kMaxEventGroups); ++i) {
    const v1::StackGroup& group = stacks.groups(i);
    const std::string prefix = absl::StrCat("group.", i + 1);
    event.fields[prefix + ".tasks"] = TaskRanges(group, kMaxEventBytes);
    std::string text;
    for (const std::string& frame : group.frames()) {
      if (text.size() + frame.size() + 3 > kMaxEventBytes) break;
      absl::StrAppend(&text, text.empty() ? "" : " < ", frame);
    }
    event.fields[prefix + ".stack"] = text;
  }
  return event;
}

}  // namespace tacho::server::requests
