// How long a store takes to be ready after a kill, and what memory that takes: a million series
// (11,364 sources of 88) with open rows until the journal is as full as it gets.
//
//   tacho-bench-recovery DIRECTORY [SOURCES [ROUNDS]]
//
// A child fills the store and is killed; then this process opens it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "storage/store.h"

namespace tacho::storage {
namespace {

constexpr uint32_t kColumns = 88;

StoreOptions Options(const std::string& path) {
  StoreOptions options;
  options.path = path;
  options.seal_age = absl::Hours(24);
  options.log = [](absl::string_view line) { std::cout << "  log: " << line << "\n"; };
  return options;
}

// A field of /proc/self/status, in MiB.
uint64_t Memory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kilobytes = 0;
    if (word == field + ":" && status >> kilobytes) return kilobytes >> 10;
  }
  return 0;
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// Fills the store until `rounds` rows of every source are in it, or the journal has its bound.
void Fill(const std::string& path, uint32_t sources, uint32_t rounds) {
  auto store = Store::Open(Options(path));
  if (!store.ok()) std::abort();
  std::vector<LayoutPtr> layouts;
  for (uint32_t source = 0; source < sources; ++source) {
    LayoutDefinition definition;
    definition.source = {"fleet", source, 0, absl::StrCat("host-", source)};
    for (uint32_t column = 0; column < kColumns; ++column) {
      definition.series.push_back(
          {{absl::StrCat("metric_", column), MetricType::kGauge, "1", ""}, {}});
    }
    layouts.push_back((*store)->RegisterLayout(definition)->layout);
  }
  const int64_t begin = absl::ToUnixNanos(absl::Now());
  std::vector<double> values(kColumns);
  uint32_t round = 0;
  for (; round < rounds && (*store)->Stats().journal_bytes < Options("").journal_bytes; ++round) {
    absl::BlockingCounter left(static_cast<int>(sources));
    for (uint32_t source = 0; source < sources; ++source) {
      for (uint32_t column = 0; column < kColumns; ++column) {
        values[column] = std::floor(100 * std::sin(source + column * 0.1 + round * 0.01)) / 4;
      }
      const std::vector<int64_t> times = {begin + int64_t{round} * 1'000'000'000 + source};
      (*store)->AppendRows({absl::StrCat("agent-", source), 1, round + 1}, layouts[source],
                           {times, {}, values},
                           [&left](const absl::Status&) { left.DecrementCount(); });
    }
    left.Wait();
  }
  const StoreStats stats = (*store)->Stats();
  std::cout << absl::StrFormat(
                   "before the kill: %d series, %d rows a source, journal %d MiB in %d entries, "
                   "resident %d MiB "
                   "(highest %d)\n",
                   stats.series, round, stats.journal_bytes >> 20, stats.journal_entries,
                   Memory("VmRSS"), Memory("VmHWM"))
            << std::flush;
  ::kill(::getpid(), SIGKILL);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "tacho-bench-recovery DIRECTORY [SOURCES [ROUNDS]]\n";
    return 2;
  }
  const std::string path = argv[1];
  const uint32_t sources = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 11'364;
  const uint32_t rounds = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 1'000;
  std::filesystem::remove_all(path);
  const pid_t child = ::fork();
  if (child == 0) Fill(path, sources, rounds);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return 1;
  const double cpu = CpuSeconds();
  const absl::Time begin = absl::Now();
  const auto store = Store::Open(Options(path));
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return 1;
  }
  const StoreStats stats = (*store)->Stats();
  std::cout << absl::StrFormat(
                   "ready again: %.2f s, %.2f s of CPU; %d series, %d open rows, resident %d MiB "
                   "(highest %d)\n",
                   absl::ToDoubleSeconds(absl::Now() - begin), CpuSeconds() - cpu, stats.series,
                   stats.open_rows, Memory("VmRSS"), Memory("VmHWM"))
            << std::flush;
  std::_Exit(0);
}

}  // namespace
}  // namespace tacho::storage

int main(int argc, char** argv) { return tacho::storage::Main(argc, argv); }
