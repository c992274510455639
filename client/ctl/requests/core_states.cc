#include "client/ctl/requests/core_states.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr char kJobOfHosts[] = "hosts";  // sources.tpu.job of the agents' configuration.
constexpr char kKind[] = "tpu_core_state";
constexpr absl::Duration kReach = absl::Hours(6);
constexpr uint32_t kMostEvents = 100'000;
// A group of more cores is told by its size alone.
constexpr size_t kMostNamed = 8;

std::string Field(const v1::RecordedEvent& event, const char* name) {
  const auto found = event.fields().find(name);
  return found == event.fields().end() ? "" : found->second;
}

std::string CoreText(const TpuCore& core) {
  std::string text = absl::StrCat("core ", core.core);
  if (!core.chip.empty()) absl::StrAppend(&text, " (chip ", core.chip, ")");
  absl::StrAppend(&text, " on ", core.host);
  return text;
}

std::string PlaceText(const CoreGroup& group) {
  std::string text = group.type.empty() ? "" : absl::StrCat(group.type, ", ");
  absl::StrAppend(&text,
                  group.program.empty() ? "no program" : absl::StrCat("program ", group.program));
  if (group.counter == "0") {
    absl::StrAppend(&text, ", at 0: waits for input");
  } else if (!group.counter.empty()) {
    absl::StrAppend(&text, ", at ", group.counter);
  }
  return text;
}

}  // namespace

std::vector<CoreGroup> GroupCores(const std::vector<v1::RecordedEvent>& events,
                                  const std::set<std::string>& hosts) {
  std::map<std::pair<std::string, std::string>, const v1::RecordedEvent*> newest;
  for (const v1::RecordedEvent& event : events) {
    const std::string& host = event.source().host();
    const std::string core = Field(event, "core");
    if (event.kind() != kKind || core.empty() || !hosts.contains(host)) continue;
    const v1::RecordedEvent*& known = newest[{host, core}];
    if (known == nullptr || known->time_unix_ns() <= event.time_unix_ns()) known = &event;
  }
  std::map<std::tuple<std::string, std::string, std::string>, CoreGroup> groups;
  for (const auto& [key, event] : newest) {
    const std::string type = Field(*event, "core_type");
    const std::string program = Field(*event, "fingerprint");
    const std::string counter = Field(*event, "pc_0");
    CoreGroup& group = groups[{type, program, counter}];
    group.type = type;
    group.program = program;
    group.counter = counter;
    group.cores.push_back({.host = key.first,
                           .core = key.second,
                           .chip = Field(*event, "chip"),
                           .time_ns = event->time_unix_ns()});
  }
  std::vector<CoreGroup> sorted;
  sorted.reserve(groups.size());
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const CoreGroup& a, const CoreGroup& b) {
    return a.cores.size() > b.cores.size();
  });
  return sorted;
}

absl::StatusOr<std::vector<CoreGroup>> ReadCores(const v1::TakeStacksResponse& stacks,
                                                 absl::Time now, QueryClient* client) {
  std::set<std::string> hosts;
  for (const v1::StackGroup& group : stacks.groups()) {
    for (const v1::StackMember& member : group.members()) hosts.insert(member.host());
  }
  for (const v1::AbsentTask& absent : stacks.absent()) hosts.insert(absent.host());
  v1::ListEventsRequest request;
  request.set_job(kJobOfHosts);
  request.set_kind(kKind);
  request.set_newest(kMostEvents);
  request.set_attempts(v1::ATTEMPTS_ALL);
  request.mutable_time()->set_begin_unix_ns(absl::ToUnixNanos(now - kReach));
  std::vector<v1::RecordedEvent> events;
  TACHO_RETURN_IF_ERROR(
      client->ListEvents(request, [&events](const v1::ListEventsResponse& response) {
        events.insert(events.end(), response.events().begin(), response.events().end());
        return true;
      }));
  return GroupCores(events, hosts);
}

void PrintCores(const Environment& env, const std::vector<CoreGroup>& groups) {
  if (groups.empty()) return;
  std::ostream& out = *env.out;
  int64_t newest_ns = 0;
  size_t cores = 0;
  for (const CoreGroup& group : groups) {
    cores += group.cores.size();
    for (const TpuCore& core : group.cores) newest_ns = std::max(newest_ns, core.time_ns);
  }
  out << "\nCores of TPUs, as agents recorded them until " << ReadableTime(newest_ns, env.zone)
      << ": " << Count(cores, "core") << ", " << Count(groups.size(), "kind") << '\n';
  for (const CoreGroup& group : groups) {
    const bool most = &group == &groups.front();
    out << "  " << Count(group.cores.size(), "core") << (most ? "" : " unlike most") << ": "
        << Printable(PlaceText(group)) << '\n';
    if (most || group.cores.size() > kMostNamed) continue;
    for (const TpuCore& core : group.cores) out << "    " << Printable(CoreText(core)) << '\n';
  }
}

void WriteCores(const std::vector<CoreGroup>& groups, JsonWriter* json) {
  json->Objects("cores", groups, [&](const CoreGroup& group) {
    json->Field("type", MaybeText(group.type));
    json->Field("program", MaybeText(group.program));
    json->Field("program_counter", MaybeText(group.counter));
    json->Objects("members", group.cores, [&](const TpuCore& core) {
      json->Field("host", core.host);
      json->Field("core", core.core);
      json->Field("chip", MaybeText(core.chip));
      json->TimeFields("recorded", core.time_ns);
    });
  });
}

}  // namespace tacho::ctl
