// The best view of each trainer that can be had without stopping it: Python's by the trainer's own
// handler, else by the operator's program, else the kernel's.
#include "agent/requests/take_stacks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/diagnose/child_process.h"
#include "agent/requests/kernel_stacks.h"
#include "agent/requests/python_stacks.h"
#include "agent/requests/stacks_file.h"
#include "agent/requests/trainers.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

// A handler that runs at all has begun by then.
constexpr absl::Duration kMostForHandler = absl::Seconds(2);
// Programs run one after the other; the last one must leave time for the way back.
constexpr absl::Duration kLeastForCommand = absl::Milliseconds(200);

struct Subject {
  Trainer trainer;
  v1::TaskStacks* stacks = nullptr;
  std::optional<StacksFile> file;  // Asked for its stacks.
};

void SetThreads(std::vector<PythonThread> threads, v1::StackOrigin origin, v1::TaskStacks* stacks) {
  stacks->set_origin(origin);
  stacks->clear_main();
  stacks->clear_threads();
  for (v1::StackFrame& frame : threads.back().frames) *stacks->add_main() = std::move(frame);
  threads.pop_back();
  for (PythonThread& thread : threads) {
    v1::ThreadStack* const added = stacks->add_threads();
    added->set_name(thread.name);
    for (v1::StackFrame& frame : thread.frames) *added->add_frames() = std::move(frame);
  }
}

void TakeKernelView(const std::string& proc, Subject* subject) {
  v1::TaskStacks* const stacks = subject->stacks;
  const auto threads = ReadKernelThreads(proc, subject->trainer.info.pid);
  if (!threads.ok() || threads->empty()) return;
  const KernelThread& main = threads->front();
  stacks->set_origin(v1::STACK_ORIGIN_KERNEL);
  stacks->set_state(main.state);
  stacks->set_waits_in(main.waits_in);
  for (const v1::StackFrame& frame : main.frames) *stacks->add_main() = frame;
  for (size_t i = 1; i < threads->size(); ++i) {
    const KernelThread& thread = (*threads)[i];
    v1::ThreadStack* const added = stacks->add_threads();
    added->set_name(thread.name);
    added->set_state(thread.state);
    added->set_waits_in(thread.waits_in);
    for (const v1::StackFrame& frame : thread.frames) *added->add_frames() = frame;
  }
}

void RequestDump(Subject* subject) {
  auto file = StacksFile::Open(subject->trainer.ring);
  absl::Status status = file.status();
  if (file.ok()) {
    status = file->Request(*subject->trainer.process, subject->trainer.info.pid);
    if (status.ok()) subject->file.emplace(*std::move(file));
  }
  if (!status.ok()) subject->stacks->set_trouble(std::string(status.message()));
}

void TakeDump(absl::Time until, Subject* subject) {
  const auto text = subject->file->Take(until);
  if (!text.ok()) return subject->stacks->set_trouble(std::string(text.status().message()));
  std::vector<PythonThread> threads = ParseFaultHandler(*text);
  if (threads.empty()) return subject->stacks->set_trouble("the trainer's handler wrote no stack");
  SetThreads(std::move(threads), v1::STACK_ORIGIN_PYTHON, subject->stacks);
}

// Runs the operator's program for a trainer that has no stack of Python's yet.
void RunCommand(const config::v1::Agent::Requests& config, absl::Time until, Subject* subject) {
  const std::string pid = absl::StrCat(subject->trainer.info.pid);
  std::vector<std::string> arguments =
      absl::StrSplit(config.stack_command(), ' ', absl::SkipEmpty());
  for (std::string& argument : arguments) {
    argument = absl::StrReplaceAll(argument, {{"{pid}", pid}});
  }
  const absl::Duration timeout =
      std::min(absl::Nanoseconds(config.stack_command_timeout()), until - MonotonicNow());
  if (arguments.empty() || timeout < kLeastForCommand) return;
  const auto output = RunChild(arguments, "", timeout);
  std::vector<PythonThread> threads;
  if (output.ok() && output->exit_status == 0) threads = ParsePySpy(output->text);
  if (threads.empty()) {
    const std::string why = !output.ok()
                                ? std::string(output.status().message())
                                : absl::StrCat("exit code ", output->exit_status, ", and no stack");
    subject->stacks->set_trouble(
        absl::StrCat(subject->stacks->trouble(), "; requests.stack_command: ", why));
    return;
  }
  subject->stacks->clear_trouble();
  SetThreads(std::move(threads), v1::STACK_ORIGIN_COMMAND, subject->stacks);
}

}  // namespace

v1::AgentFindings TakeStacks(const StacksOptions& options, const v1::AgentRequest& request,
                             absl::Time until) {
  v1::AgentFindings findings;
  if (options.rings.empty()) {
    findings.set_refusal("sources.rings.directory is empty: the agent knows no trainers");
    return findings;
  }
  auto trainers = FindTrainers(options.rings, request);
  if (!trainers.ok()) {
    findings.set_refusal(std::string(trainers.status().message()));
    return findings;
  }
  const bool python = options.config.stacks() == "python";
  std::vector<Subject> subjects;
  subjects.reserve(trainers->size());
  for (Trainer& trainer : *trainers) {
    v1::TaskStacks* const stacks = findings.add_stacks();
    stacks->set_task(trainer.info.task);
    stacks->set_pid(trainer.info.pid);
    if (!trainer.process->Lives()) {
      stacks->set_trouble("its process is gone, or in another pid namespace than the agent");
      continue;
    }
    subjects.push_back({.trainer = std::move(trainer), .stacks = stacks, .file = std::nullopt});
  }
  for (Subject& subject : subjects) TakeKernelView(options.proc, &subject);
  if (!python) return findings;
  for (Subject& subject : subjects) RequestDump(&subject);
  const absl::Time handled_by = std::min(until, MonotonicNow() + kMostForHandler);
  for (Subject& subject : subjects) {
    if (subject.file.has_value()) TakeDump(handled_by, &subject);
  }
  if (options.config.stack_command().empty()) return findings;
  for (Subject& subject : subjects) {
    if (!subject.stacks->trouble().empty()) RunCommand(options.config, until, &subject);
  }
  return findings;
}

}  // namespace tacho::agent
