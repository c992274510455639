#include "agent/requests/python_stacks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/utf8.h"

namespace tacho::agent {
namespace {

std::string NameOf(absl::string_view text) {
  if (text.size() > kMaxFrameNameBytes) text.remove_prefix(text.size() - kMaxFrameNameBytes);
  std::string name(text);
  for (char& c : name) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  if (IsUtf8(std::string_view(name))) return name;
  for (char& c : name) {
    if (!absl::ascii_isascii(static_cast<unsigned char>(c))) c = '?';
  }
  return name;
}

v1::StackFrame FrameOf(absl::string_view file, absl::string_view function, absl::string_view line) {
  v1::StackFrame frame;
  frame.set_file(NameOf(file));
  frame.set_function(NameOf(function));
  uint32_t number = 0;
  if (absl::SimpleAtoi(line, &number)) frame.set_line(number);
  return frame;
}

//   File "/train/loop.py", line 12 in step
std::optional<v1::StackFrame> FaultHandlerFrame(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "  File \"")) return std::nullopt;
  constexpr absl::string_view kLine = "\", line ";
  constexpr absl::string_view kIn = " in ";
  const size_t file = line.find(kLine);
  if (file == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = line.substr(file + kLine.size());
  const size_t number = rest.find(kIn);
  if (number == absl::string_view::npos) return std::nullopt;
  return FrameOf(line.substr(0, file), rest.substr(number + kIn.size()), rest.substr(0, number));
}

//     step (loop.py:12)
std::optional<v1::StackFrame> PySpyFrame(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "    ") || !absl::ConsumeSuffix(&line, ")")) return std::nullopt;
  const size_t file = line.rfind(" (");
  if (file == absl::string_view::npos) return std::nullopt;
  const absl::string_view place = line.substr(file + 2);
  const size_t colon = place.rfind(':');
  if (colon == absl::string_view::npos) return FrameOf(place, line.substr(0, file), "");
  return FrameOf(place.substr(0, colon), line.substr(0, file), place.substr(colon + 1));
}

// Thread 0x00007f… [name] (most recent call first):
bool IsFaultHandlerThread(absl::string_view line, std::string* name) {
  if (!absl::StartsWith(line, "Thread 0x") && !absl::StartsWith(line, "Current thread 0x")) {
    return false;
  }
  if (!absl::StrContains(line, "(most recent call first)")) return false;
  const size_t begin = line.find('[');
  const size_t end = line.find(']');
  name->clear();
  if (begin != absl::string_view::npos && end != absl::string_view::npos && begin < end) {
    *name = NameOf(line.substr(begin + 1, end - begin - 1));
  }
  return true;
}

// Thread 0x7F… (active): "MainThread", or in later versions: Thread 123 (idle): "MainThread"
bool IsPySpyThread(absl::string_view line, std::string* name) {
  if (!absl::StartsWith(line, "Thread ")) return false;
  const size_t begin = line.find('"');
  const size_t end = line.rfind('"');
  name->clear();
  if (begin != absl::string_view::npos && begin < end) {
    *name = NameOf(line.substr(begin + 1, end - begin - 1));
  }
  return true;
}

template <typename IsThread, typename ToFrame>
std::vector<PythonThread> Parse(absl::string_view text, const IsThread& is_thread,
                                const ToFrame& to_frame) {
  std::vector<PythonThread> threads;
  std::string name;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (is_thread(line, &name)) {
      // The last one is the main thread: it takes the place of one that there is no room for.
      if (threads.size() == kMaxThreads) threads.pop_back();
      threads.push_back({.name = std::exchange(name, {}), .frames = {}});
    } else if (!threads.empty() && threads.back().frames.size() < kMaxFrames) {
      if (auto frame = to_frame(line)) threads.back().frames.push_back(*std::move(frame));
    }
  }
  return threads;
}

}  // namespace

std::vector<PythonThread> ParseFaultHandler(absl::string_view text) {
  return Parse(text, IsFaultHandlerThread, FaultHandlerFrame);
}

std::vector<PythonThread> ParsePySpy(absl::string_view text) {
  std::vector<PythonThread> threads = Parse(text, IsPySpyThread, PySpyFrame);
  const auto main = std::find_if(threads.begin(), threads.end(), [](const PythonThread& thread) {
    return thread.name == "MainThread";
  });
  if (main != threads.end()) std::rotate(main, main + 1, threads.end());
  return threads;
}

}  // namespace tacho::agent
