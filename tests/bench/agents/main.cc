// tacho-bench-agents: a fleet of agents that takes commands from its standard input, one a line,
// and reports what happens on its standard output, an object of JSON a line. tests/bench/fleet
// drives it; see there for what the commands mean.
//
//   connect | start | stop | disconnect | verify | quit
//   cut SHARE | abandon SHARE
//   pause SHARE SECONDS | silence SHARE SECONDS | trickle SHARE SECONDS
//   mark NAME
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/bench/agents/fleet.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

void Emit(const std::string& event, const std::string& members) {
  std::printf("{\"event\": \"%s\", \"t\": %.6f, \"cpu_s\": %.3f%s%s}\n", event.c_str(),
              MonotonicSeconds(), OwnCpuSeconds(), members.empty() ? "" : ", ", members.c_str());
  std::fflush(stdout);
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "tacho-bench-agents: %s\n", why.c_str());
  std::_Exit(1);
}

double DoubleFlag(const std::map<std::string, std::string>& flags, const std::string& name) {
  double number = 0;
  if (absl::SimpleAtod(flags.at(name), &number) && number >= 0) return number;
  Fail(absl::StrCat("--", name, " ", flags.at(name), ": expected a number"));
}

FleetOptionsOfRun ReadOptions(const std::map<std::string, std::string>& flags) {
  const auto natural = [&flags](const char* name) {
    return static_cast<uint32_t>(NumberFlag(flags, name));
  };
  FleetOptionsOfRun options;
  options.address = flags.at("address");
  options.token = flags.at("token");
  options.agents = natural("agents");
  options.window = natural("window");
  options.backlog_rate = DoubleFlag(flags, "backlog-rate");
  options.connect_rate = DoubleFlag(flags, "connect-rate");
  options.backoff_min_s = DoubleFlag(flags, "backoff-min");
  options.backoff_max_s = DoubleFlag(flags, "backoff-max");
  options.seed = natural("seed");
  RowShape& shape = options.shape;
  shape.series = natural("series");
  shape.layouts = natural("layouts");
  shape.rows = natural("rows");
  shape.generation = static_cast<uint64_t>(NumberFlag(flags, "generation"));
  shape.start_unix_ns = absl::ToUnixNanos(absl::Now());
  if (flags.at("rate") == "max") {
    options.as_fast_as_acknowledged = true;
    shape.rate = 1000;  // Their times begin in the past so as not to reach the future.
    shape.start_unix_ns -= int64_t{3600} * 1'000'000'000;
  } else {
    shape.rate = DoubleFlag(flags, "rate");
    options.idle = shape.rate == 0;
    if (options.idle) shape.rate = 1;
  }
  return options;
}

// A descriptor for each agent and some of our own.
void AllowDescriptors(uint32_t agents) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = rlim_t{agents} + 64;
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed) {
    Fail(absl::StrCat(agents, " agents need as many file descriptors and the limit is ",
                      limit.rlim_max, ": raise it (ulimit -Hn) or take fewer agents"));
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool Has(const std::vector<std::string>& words, size_t index, double* number) {
  return words.size() > index && absl::SimpleAtod(words[index], number);
}

// Returns whether to go on.
bool Obey(const std::string& line, Fleet* fleet) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return true;
  const std::string& command = words[0];
  double share = 0, seconds = 0;
  const bool has_share = Has(words, 1, &share);
  const bool has_seconds = Has(words, 2, &seconds);
  if (command == "quit") return false;
  if (command == "connect") return fleet->Connect(), true;
  if (command == "start") return fleet->Start(), true;
  if (command == "stop") return fleet->Stop(), true;
  if (command == "disconnect") return fleet->Disconnect(), true;
  if (command == "verify") return fleet->Verify(), true;
  if (command == "mark") return fleet->Mark(words.size() > 1 ? words[1] : ""), true;
  if (command == "cut" && has_share) return fleet->Cut(share), true;
  if (command == "abandon" && has_share) return fleet->Abandon(share), true;
  for (const auto& [name, trouble] :
       {std::pair("pause", Trouble::kPause), std::pair("silence", Trouble::kSilence),
        std::pair("trickle", Trouble::kTrickle)}) {
    if (command == name && has_seconds) return fleet->Make(trouble, share, seconds), true;
  }
  Fail(absl::StrCat("not a command: ", line));
}

// Reads what is there. False at the end of the input.
bool ReadCommands(std::string* partial, std::vector<std::string>* lines) {
  std::array<char, 4096> buffer;
  const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size == 0) return false;
  if (size > 0) partial->append(buffer.data(), static_cast<size_t>(size));
  for (size_t end = 0; (end = partial->find('\n')) != std::string::npos;) {
    lines->push_back(partial->substr(0, end));
    partial->erase(0, end + 1);
  }
  return true;
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {{"address", "127.0.0.1:7411"},
                                              {"token", ""},
                                              {"agents", "200"},
                                              {"series", "88"},
                                              {"layouts", "1"},
                                              {"rows", "1"},
                                              {"rate", "1"},
                                              {"window", "16"},
                                              {"backlog-rate", "20"},
                                              {"connect-rate", "1000"},
                                              {"backoff-min", "0.5"},
                                              {"backoff-max", "30"},
                                              {"generation", "1"},
                                              {"seed", "1"}};
  ParseFlags(argc, argv, &flags);
  const FleetOptionsOfRun options = ReadOptions(flags);
  AllowDescriptors(options.agents);
  const auto peer = Resolve(options.address);
  if (!peer.ok()) Fail(absl::StrCat("--address: ", peer.status().message()));
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);

  Fleet fleet(options, *peer, Emit);
  Emit("ready", "");
  std::string partial;
  for (;;) {
    std::vector<std::string> lines;
    if (!ReadCommands(&partial, &lines)) return 0;
    for (const std::string& line : lines) {
      if (!Obey(line, &fleet)) return 0;
    }
    fleet.RunOnce(MonotonicSeconds() + 1, STDIN_FILENO);
    if (!fleet.status().ok()) Fail(std::string(fleet.status().message()));
  }
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) { return tacho::bench::Main(argc, argv); }
