// Stacks in the words of Python's faulthandler and of py-spy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

// More threads of a process, and more frames of a thread, are left out.
inline constexpr size_t kMaxThreads = 256;
inline constexpr size_t kMaxFrames = 128;
// Longer names of files and functions keep their end.
inline constexpr size_t kMaxFrameNameBytes = 256;

struct PythonThread {
  std::string name;  // Empty if it is not known.
  std::vector<v1::StackFrame> frames;
};

// The threads of a dump by faulthandler.register(all_threads=True), which has the main thread last.
// Lines that are neither a thread nor a frame are skipped. Takes any bytes.
std::vector<PythonThread> ParseFaultHandler(absl::string_view text);

// The threads of `py-spy dump`: `Thread 0x7F… (active): "MainThread"`, with frames such as
// `function (file.py:12)`. The main thread is moved to the end. Takes any bytes.
std::vector<PythonThread> ParsePySpy(absl::string_view text);

}  // namespace tacho::agent
