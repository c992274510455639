// Stacks: what a trainer's handler, an operator's program and the kernel write, and what an agent
// then says of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/requests/answer_desk.h"
#include "agent/requests/kernel_stacks.h"
#include "agent/requests/python_stacks.h"
#include "server/requests/stack_groups.h"

namespace {

using tacho::agent::PythonThread;

// What is read can be sent, and grouped.
void Check(const std::vector<PythonThread>& threads) {
  if (threads.size() > tacho::agent::kMaxThreads) std::abort();
  tacho::v1::AgentFindings findings;
  tacho::v1::TaskStacks* const stacks = findings.add_stacks();
  for (const PythonThread& thread : threads) {
    if (thread.frames.size() > tacho::agent::kMaxFrames) std::abort();
    for (const auto& frame : thread.frames) *stacks->add_main() = frame;
  }
  tacho::agent::Shorten(2000, &findings);
  const std::string bytes = findings.SerializeAsString();
  if (bytes.size() > 2000 || !findings.ParseFromString(bytes)) std::abort();
}

void Group(absl::string_view bytes) {
  tacho::v1::AgentFindings findings;
  if (!findings.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  std::vector<tacho::server::requests::TaskOnHost> tasks;
  for (const auto& stacks : findings.stacks()) {
    tasks.push_back({.task = stacks.task(), .host = "host", .untrusted = &stacks});
  }
  tacho::v1::TakeStacksResponse response;
  size_t members = 0;
  for (const auto& group : tacho::server::requests::GroupStacks(tasks)) {
    members += static_cast<size_t>(group.members_size());
    *response.add_groups() = group;
  }
  if (members != tasks.size()) std::abort();
  // A name that is no UTF-8 cannot be sent.
  const std::string sent = response.SerializeAsString();
  if (!response.ParseFromString(sent)) std::abort();
  const auto event = tacho::server::requests::ToEvent(response, "Stalled");
  if (event.fields.size() > 32 || event.message.size() > 1024) std::abort();
  for (const auto& [name, value] : event.fields) {
    if (value.size() > 1024) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Check(tacho::agent::ParseFaultHandler(bytes));
  Check(tacho::agent::ParsePySpy(bytes));
  tacho::agent::ParseKernelStack(bytes);
  tacho::agent::CatchesSignal(bytes, 41);
  Group(bytes);
  return 0;
}
