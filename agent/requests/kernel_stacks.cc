#include "agent/requests/kernel_stacks.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/requests/python_stacks.h"
#include "agent/sources/host/host_text.h"
#include "agent/sources/host/process_stat.h"

namespace tacho::agent {
namespace {

// Text of the kernel's, where nothing but this is expected.
std::string WordOf(absl::string_view text) {
  std::string word(absl::StripAsciiWhitespace(text).substr(0, kMaxFrameNameBytes));
  for (char& c : word) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return word;
}

std::string ReadWord(const std::string& path) {
  const auto text = ReadProcFile(path);
  return text.ok() ? WordOf(*text) : "";
}

KernelThread ReadThread(const std::string& directory, int id) {
  KernelThread thread;
  thread.id = id;
  thread.name = ReadWord(directory + "/comm");
  if (const auto text = ReadProcFile(directory + "/stat"); text.ok()) {
    if (const auto stat = ParseProcessStat(*text)) thread.state = std::string(1, stat->state);
  }
  thread.waits_in = ReadWord(directory + "/wchan");
  if (thread.waits_in == "0") thread.waits_in.clear();
  if (const auto text = ReadProcFile(directory + "/stack"); text.ok()) {
    thread.frames = ParseKernelStack(*text);
  }
  return thread;
}

}  // namespace

absl::StatusOr<std::vector<KernelThread>> ReadKernelThreads(const std::string& proc, uint32_t pid) {
  const std::string tasks = absl::StrCat(proc, "/", pid, "/task");
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(tasks.c_str()), closedir);
  if (listing == nullptr) return absl::NotFoundError(absl::StrCat("there is no ", tasks));
  std::vector<int> ids;
  while (const dirent* const entry = readdir(listing.get())) {
    int id = 0;
    if (absl::SimpleAtoi(entry->d_name, &id)) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [main = static_cast<int>(pid)](int a, int b) {
    return std::pair(a != main, a) < std::pair(b != main, b);
  });
  ids.resize(std::min(ids.size(), kMaxThreads));
  std::vector<KernelThread> threads;
  threads.reserve(ids.size());
  for (const int id : ids) threads.push_back(ReadThread(absl::StrCat(tasks, "/", id), id));
  return threads;
}

std::vector<v1::StackFrame> ParseKernelStack(absl::string_view text) {
  std::vector<v1::StackFrame> frames;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (frames.size() == kMaxFrames) break;
    // [<0>] futex_wait_queue+0x5f/0x90
    const size_t space = line.find("] ");
    if (!absl::ConsumePrefix(&line, "[<") || space == absl::string_view::npos) continue;
    const absl::string_view function = line.substr(space);
    v1::StackFrame frame;
    frame.set_function(WordOf(function.substr(0, function.find('+'))));
    frames.push_back(std::move(frame));
  }
  return frames;
}

bool CatchesSignal(absl::string_view status, int signal) {
  if (signal < 1 || signal > 64) return false;
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, "SigCgt:")) continue;
    uint64_t mask = 0;
    return absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &mask) &&
           (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

}  // namespace tacho::agent
