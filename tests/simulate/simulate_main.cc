// One simulation. See tests/simulate/run for many.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/base/log.h"
#include "tests/simulate/schedule/schedule.h"
#include "tests/simulate/world/laboratory.h"

namespace {

constexpr char kHelp[] =
    "tacho-simulate [--seed N] [--ticks SECONDS] [--days N] [--leave-out N,N,...]\n"
    "               [--log] [--trace FILE]\n"
    "\n"
    "Runs a collector and two to four agents with their disks, clocks and network in one process,\n"
    "on virtual time, lets things go wrong, and checks all the time that nothing is lost, doubled\n"
    "or changed. The same flags give the same run.\n"
    "\n"
    "  --seed N            which run; default 1\n"
    "  --ticks SECONDS     how long things go wrong, in virtual seconds; default 600\n"
    "  --days N            that comes again and again, with quiet hours or days between, until so\n"
    "                      many virtual days have passed; default 0: once\n"
    "  --leave-out N,N,..  faults of the plan that do not happen, by their numbers from 0\n"
    "  --log               prints what the programs log, on standard error\n"
    "  --trace FILE        writes a line each time that another thread runs\n"
    "\n"
    "Ends with one line of JSON, and status 0 if nothing is wrong, 1 if something is, 2 for wrong\n"
    "flags, 3 if every thread waits for ever.\n";

[[noreturn]] void Usage() {
  std::fputs(kHelp, stderr);
  std::exit(2);
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

// Makes a directory in memory for trainers' rings, and goes there: their names must be the same in
// each run.
std::string EnterDirectory() {
  const char* parent = std::getenv("TMPDIR");
  if (parent == nullptr) parent = "/dev/shm";
  std::string path = std::string(parent) + "/tacho-simulate-XXXXXX";
  if (mkdtemp(path.data()) == nullptr || chdir(path.c_str()) != 0) {
    std::perror(path.c_str());
    std::exit(2);
  }
  return path;
}

}  // namespace

int main(int argc, char** argv) {
  tacho::simulate::BeginAgainWithoutRandomAddresses(argv);
  tacho::simulate::LaboratoryOptions options;
  tacho::simulate::ScheduleOptions schedule;
  bool log = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (flag == "--log") {
      log = true;
      continue;
    }
    if (++i == argc) Usage();
    if (flag == "--seed" && absl::SimpleAtoi(argv[i], &options.seed)) continue;
    if (flag == "--ticks" && absl::SimpleAtoi(argv[i], &options.ticks)) continue;
    if (flag == "--days" && absl::SimpleAtoi(argv[i], &options.days)) continue;
    if (flag == "--trace") {
      schedule.trace = std::fopen(argv[i], "w");
      if (schedule.trace == nullptr) Usage();
      continue;
    }
    if (flag != "--leave-out") Usage();
    for (const absl::string_view part : absl::StrSplit(argv[i], ',', absl::SkipEmpty())) {
      int number = 0;
      if (!absl::SimpleAtoi(part, &number)) Usage();
      options.left_out.insert(number);
    }
  }
  const std::string directory = EnterDirectory();
  schedule.seed = options.seed;
  schedule.start_unix_ns = tacho::simulate::StartUnixNs(options);
  // Some runs interrupt threads all the time, some hardly ever.
  constexpr uint32_t kInterrupts[] = {4, 16, 64, 1024};
  schedule.interrupt_one_in = kInterrupts[options.seed % 4];
  tacho::simulate::BeginSchedule(schedule);
  if (log) {
    tacho::log::LogOptions lines;
    lines.level = tacho::log::Level::kDebug;
    lines.write = [](tacho::log::Level, absl::string_view line) {
      std::fprintf(stderr, "%10.3f host %d ",
                   static_cast<double>(tacho::simulate::LaboratoryNs()) * 1e-9,
                   tacho::simulate::CurrentHost());
      std::fwrite(line.data(), 1, line.size(), stderr);
    };
    options.log = tacho::log::Log(std::move(lines));
  }
  const uint64_t seed = options.seed;
  auto* const laboratory = new tacho::simulate::Laboratory(std::move(options));
  const auto result = laboratory->Run();
  std::string faults;
  for (const std::string& fault : result.faults) {
    faults += (faults.empty() ? "" : ", ") + Quoted(fault);
  }
  std::printf(
      "{\"seed\": %llu, \"wrong\": %s, \"rows\": %llu, \"acknowledged\": %llu, "
      "\"checks\": %llu, \"refused_samples\": %llu, \"range_samples\": %llu, "
      "\"virtual_seconds\": %.0f, "
      "\"switches\": %llu, \"fingerprint\": \"%016llx\", \"faults\": [%s]}\n",
      static_cast<unsigned long long>(seed), Quoted(result.wrong).c_str(),
      static_cast<unsigned long long>(result.rows),
      static_cast<unsigned long long>(result.acknowledged),
      static_cast<unsigned long long>(result.checks),
      static_cast<unsigned long long>(result.refused_samples),
      static_cast<unsigned long long>(result.range_samples), result.virtual_seconds,
      static_cast<unsigned long long>(tacho::simulate::Switches()),
      static_cast<unsigned long long>(tacho::simulate::Fingerprint()), faults.c_str());
  std::fflush(stdout);
  std::filesystem::remove_all(directory);
  // Other threads still run: nothing may be destroyed.
  _exit(result.wrong.empty() ? 0 : 1);
}
