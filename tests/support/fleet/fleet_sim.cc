// tacho-fleet-sim: plays a fleet of training jobs for agents and a collector to watch, with faults.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/fleet/fleet_player.h"

namespace tacho::fleet {
namespace {

constexpr char kHelp[] =
    R"(tacho-fleet-sim: plays training jobs: rings for agents to read, with faults to find.

  --dir DIR           rings/<host>/ and proc/<host>/ are made below it. Required.
  --job NAME[:key=value,...]
                      A job on hosts of its own; give several. Keys: tasks=8, per_host=4,
                      step=0.1 (seconds), steps=1000000 (then it ends well), eval=100,
                      checkpoint=200 (steps between). Hosts are host-0, host-1, … over all jobs.
  --collector ADDR    Where the chips' measurements go, by gRPC. Without one there are none.
  --history SECONDS   Begin so long ago; caught up at --speed times the speed of time. Default: 0.
  --speed N           Default: 100.
  --sample SECONDS    Between samples of chips and hosts. Default: 1.
  --ring-kib N        Of each task's ring. Default: 1024.
  --seed N            Default: 1. The same seed plays the same values.
  --fault LINE        As the lines below; give several.

Reads faults from standard input, one a line (tests/support/fleet/fault.h), and "where", which tells
how far the jobs are; its end ends nothing. SIGTERM and SIGINT end it. Tells on standard output what
happens, one JSON document a line: time_unix_ns, what, job, attempt, step, tasks (none: all), fault.
)";

struct SimFlags {
  FleetOptions fleet;
  std::vector<JobSpec> jobs;
  std::vector<std::string> faults;
  double history = 0;
  double speed = 100;
};

// Empty, or what is wrong.
std::string ParseSimFlags(int argc, char** argv, SimFlags* out) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return name + ": no value";
    const std::string value = argv[i + 1];
    double number = 0;
    const bool is_number = absl::SimpleAtod(value, &number) && number >= 0;
    if (name == "--job") {
      absl::StatusOr<JobSpec> job = ParseJob(value);
      if (!job.ok()) return std::string(job.status().message());
      out->jobs.push_back(*std::move(job));
    } else if (name == "--dir") {
      out->fleet.directory = value;
    } else if (name == "--collector") {
      out->fleet.collector = value;
    } else if (name == "--fault") {
      out->faults.push_back(value);
    } else if (!is_number) {
      return absl::StrCat(name, " ", value, ": no such flag, or no number");
    } else if (name == "--history") {
      out->history = number;
    } else if (name == "--speed" && number > 0) {
      out->speed = number;
    } else if (name == "--sample" && number > 0) {
      out->fleet.sample_ns = static_cast<int64_t>(number * 1e9);
    } else if (name == "--ring-kib") {
      out->fleet.ring_bytes = static_cast<uint64_t>(number) * 1024;
    } else if (name == "--seed") {
      out->fleet.seed = static_cast<uint64_t>(number);
    } else {
      return absl::StrCat(name, " ", value, ": no such flag, or not in its bounds");
    }
  }
  if (out->fleet.directory.empty()) return "--dir is missing";
  if (out->jobs.empty()) return "--job is missing";
  return "";
}

void Say(const Happening& happened) {
  std::printf(
      "{\"time_unix_ns\": %lld, \"what\": \"%s\", \"job\": \"%s\", \"attempt\": %u, \"step\": "
      "%lld, "
      "\"tasks\": [%s], \"fault\": \"%s\"}\n",
      static_cast<long long>(happened.time_ns), happened.what.c_str(), happened.job.c_str(),
      happened.attempt, static_cast<long long>(happened.step),
      absl::StrJoin(happened.tasks, ", ").c_str(), happened.fault.c_str());
  std::fflush(stdout);
}

// The time of the fleet: behind the clock's by what is left of the history.
class FleetTime {
 public:
  FleetTime(double history, double speed)
      : begin_(absl::Now()), history_(absl::Seconds(history)), speed_(speed) {}
  absl::Time begin() const { return begin_ - history_; }
  absl::Time Now() const {
    const absl::Time now = absl::Now();
    return std::min(now, begin() + (now - begin_) * speed_);
  }

 private:
  const absl::Time begin_;
  const absl::Duration history_;
  const double speed_;
};

// Lines of standard input, as they come.
class Lines {
 public:
  // Waits at most so long for more. False once there will never be any.
  bool Wait(absl::Duration most, std::vector<std::string>* out) {
    pollfd input = {.fd = open_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    const int64_t ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(most), 0, 1000);
    if (poll(&input, 1, static_cast<int>(ms)) <= 0) return open_;
    char buffer[4096];
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size <= 0) return open_ = false;
    rest_.append(buffer, static_cast<size_t>(size));
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      out->push_back(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
    return true;
  }

 private:
  bool open_ = true;
  std::string rest_;
};

void Obey(const std::string& line, int64_t now_ns, FleetPlayer* fleet) {
  if (line.empty()) return;
  if (line == "where") {
    for (const auto& job : fleet->jobs()) {
      Say({.time_ns = now_ns,
           .what = job->phase(),
           .job = job->spec().name,
           .attempt = job->attempt(),
           .step = job->step(),
           .tasks = {},
           .fault = ""});
    }
    return;
  }
  const absl::StatusOr<Fault> fault = ParseFault(line);
  const absl::Status status = fault.ok() ? fleet->Apply(*fault, now_ns) : fault.status();
  if (!status.ok()) {
    std::fprintf(stderr, "tacho-fleet-sim: %s\n", std::string(status.message()).c_str());
  }
}

volatile std::sig_atomic_t stop_asked = 0;
void AskToStop(int) { stop_asked = 1; }

int Main(int argc, char** argv) {
  if (argc == 2 && absl::string_view(argv[1]) == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  SimFlags flags;
  const std::string wrong = ParseSimFlags(argc, argv, &flags);
  if (!wrong.empty()) {
    std::fprintf(stderr, "tacho-fleet-sim: %s (try --help)\n", wrong.c_str());
    return 2;
  }
  std::signal(SIGTERM, AskToStop);
  std::signal(SIGINT, AskToStop);
  const FleetTime time(flags.history, flags.speed);
  flags.fleet.begin_ns = absl::ToUnixNanos(time.begin());
  flags.fleet.generation = static_cast<uint64_t>(absl::GetCurrentTimeNanos());
  flags.fleet.tell = Say;
  FleetPlayer fleet(flags.jobs, flags.fleet);
  Lines lines;
  std::vector<std::string> given = flags.faults;
  while (stop_asked == 0) {
    for (const std::string& line : given) Obey(line, absl::ToUnixNanos(time.Now()), &fleet);
    given.clear();
    fleet.PlayUntil(absl::ToUnixNanos(time.Now()));
    lines.Wait(absl::FromUnixNanos(fleet.next_ns()) - time.Now() + absl::Milliseconds(1), &given);
  }
  return 0;
}

}  // namespace
}  // namespace tacho::fleet

int main(int argc, char** argv) { return tacho::fleet::Main(argc, argv); }
