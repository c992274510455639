// Kills a writing process again and again and compares what its store holds afterwards with a model
// kept here. Ends with a report; the exit status is 0 only if nothing was wrong.
//
//   tacho-crash-campaign --writer PROGRAM [--dir DIR] [--rounds N] [--seconds S] [--seed S]
//   [--all-points]
//
// --all-points also fails if a named point was never hit. A failure names the seed to repeat, and
// leaves the directory as it is.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "storage/db/crash_point.h"
#include "tests/crash/crash_env.h"
#include "tests/crash/model.h"
#include "tests/crash/plan.h"
#include "tests/crash/wire.h"
#include "tests/support/flags.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

// A store is given up when it holds this much: it is read as a whole in each life.
constexpr uint64_t kMaxSamples = 40'000;

struct Flags {
  std::string writer;
  std::string dir = "/tmp/tacho-crash";
  uint64_t rounds = 0;  // 0: no limit.
  uint64_t seconds = 30;
  uint64_t seed = 1;
  bool all_points = false;
};

// How one life of the writer is to end.
struct Ending {
  std::string point;  // Kills itself there, at the hit-th time; empty: killed from here.
  uint64_t hit = 1;
  uint64_t close_after = 0;   // Messages, then it closes; 0: never.
  absl::Duration kill_after;  // From its start, or from when it is ready.
  bool from_ready = false;
};

struct Totals {
  uint64_t lives = 0;
  uint64_t kills_random = 0;
  uint64_t kills_late = 0;     // Random kills where a point was armed and not reached.
  uint64_t kills_opening = 0;  // Random kills before the store was open.
  uint64_t closed = 0;
  uint64_t gave_up = 0;  // It was not, and the process ended.
  uint64_t resumed = 0;  // A full disk that was sat out.
  uint64_t stores = 0;
  uint64_t stored = 0;
  uint64_t samples_checked = 0;
  uint64_t unanswered_found = 0;
  uint64_t unanswered_absent = 0;
  std::map<std::string, uint64_t> kills_at;
};

class Campaign {
 public:
  explicit Campaign(Flags flags) : flags_(std::move(flags)), random_(flags_.seed) {
    for (const absl::string_view point : storage::crash_point::kAll) {
      totals_.kills_at[std::string(point)] = 0;
    }
    for (const absl::string_view point : kIoPoints) totals_.kills_at[std::string(point)] = 0;
  }

  int Run() {
    const absl::Time end = absl::Now() + absl::Seconds(flags_.seconds);
    absl::Time told = absl::Now();
    while (failure_.empty() && (flags_.rounds == 0 || totals_.lives < flags_.rounds) &&
           (flags_.seconds == 0 || absl::Now() < end)) {
      NewStore();
      const uint64_t lives = 20 + random_() % 40;
      uint64_t life = 0;
      while (life < lives && failure_.empty() && model_->samples() < kMaxSamples &&
             (flags_.seconds == 0 || absl::Now() < end)) {
        Live(life++, DrawEnding());
        if (absl::Now() - told > absl::Seconds(60)) {
          told = absl::Now();
          std::cout << totals_.lives << " lives, " << totals_.samples_checked << " samples checked"
                    << std::endl;
        }
      }
      if (failure_.empty())
        Live(life,
             {.close_after = 1, .kill_after = absl::Seconds(60)});  // The last kill is checked too.
      totals_.stored += model_->stored();
      totals_.samples_checked += model_->samples_checked();
      totals_.unanswered_found += model_->unanswered_found();
      totals_.unanswered_absent += model_->unanswered_absent();
      if (failure_.empty()) fs::remove_all(dir_);
    }
    return Finish();
  }

 private:
  void NewStore() {
    store_seed_ = random_();
    retention_ = random_() % 3 == 0;
    dir_ = absl::StrCat(flags_.dir, "/store-", totals_.stores++);
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    model_ = std::make_unique<Model>(store_seed_);
  }

  Ending DrawEnding() {
    Ending ending;
    const uint64_t way = random_() % 100;
    if (way < 35) {
      ending.from_ready = random_() % 3 != 0;
      ending.kill_after = absl::Microseconds(random_() % 120'000);
      return ending;
    }
    if (way < 42) {
      ending.close_after = 1 + random_() % 60;
      ending.kill_after = absl::Seconds(60);
      return ending;
    }
    // A point: any, or one of those that were hit least.
    std::vector<std::pair<uint64_t, std::string>> points;
    for (const auto& [point, hits] : totals_.kills_at) points.emplace_back(hits, point);
    std::sort(points.begin(), points.end());
    ending.point = points[random_() % (random_() % 2 == 0 ? 6 : points.size())].second;
    if (absl::StartsWith(ending.point, "open.")) {
      ending.hit = ending.point == "open.replay" ? 1 + random_() % 20 : 1;
    } else if (absl::StartsWith(ending.point, "resume.")) {
      ending.hit = 1;
    } else if (absl::StartsWith(ending.point, "partition.")) {
      ending.hit = 1 + random_() % 2;
    } else {
      ending.hit = 1 + random_() % (random_() % 2 == 0 ? 5 : 60);
    }
    if (absl::StartsWith(ending.point, "close.")) {
      ending.hit = 1;
      ending.close_after = 1 + random_() % 60;
    } else if (random_() % 4 == 0) {
      ending.close_after = 1 + random_() % 60;
    }
    ending.kill_after = absl::Milliseconds(700);
    ending.from_ready = true;
    return ending;
  }

  pid_t Spawn(uint64_t life, const Ending& ending, int fd) {
    const bool full = absl::StartsWith(ending.point, "resume.") || random_() % 8 == 0;
    std::vector<std::string> words = {flags_.writer,
                                      "dir=" + dir_,
                                      absl::StrCat("fd=", fd),
                                      absl::StrCat("seed=", store_seed_),
                                      absl::StrCat("life=", life),
                                      "point=" + ending.point,
                                      absl::StrCat("hit=", ending.hit),
                                      absl::StrCat("retention=", retention_ ? 1 : 0),
                                      absl::StrCat("full=", full ? 1 : 0),
                                      absl::StrCat("close_after=", ending.close_after)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    return pid;
  }

  void Live(uint64_t life, const Ending& ending) {
    ++totals_.lives;
    int ends[2];
    if (::pipe(ends) != 0) return Fail("pipe");
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    const pid_t pid = Spawn(life, ending, ends[1]);
    ::close(ends[1]);
    in_.clear();
    ready_ = ending_ = closed_ = false;
    bool killed = false;
    absl::Time deadline =
        ending.from_ready ? absl::Now() + absl::Seconds(60) : absl::Now() + ending.kill_after;
    bool waiting = ending.from_ready;
    for (;;) {
      pollfd poll{ends[0], POLLIN, 0};
      const absl::Duration left = deadline - absl::Now();
      const timespec timeout = absl::ToTimespec(std::max(left, absl::ZeroDuration()));
      const int events = killed ? 1 : ::ppoll(&poll, 1, &timeout, nullptr);
      if (events < 0 && errno == EINTR) continue;
      if (events == 0) {
        if (waiting) Fail("the store did not open within a minute");
        ::kill(pid, SIGKILL);
        killed = true;
        continue;
      }
      char bytes[65536];
      const ssize_t size = ::read(ends[0], bytes, sizeof(bytes));
      if (size <= 0) break;
      in_.append(bytes, static_cast<size_t>(size));
      TakeReports();
      if (waiting && ready_) {
        waiting = false;
        deadline = absl::Now() + ending.kill_after;
      }
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    Judge(life, ending, killed, status);
  }

  void Judge(uint64_t life, const Ending& ending, bool killed, int status) {
    const bool by_kill = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (by_kill && ending_) {
      ++totals_.kills_at[ending.point];
    } else if (by_kill && killed) {
      ++totals_.kills_random;
      if (!ending.point.empty()) ++totals_.kills_late;
      if (!ready_) ++totals_.kills_opening;
      if (ending.point.empty() && ending.close_after > 0) Fail("it did not close");
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && closed_) {
      ++totals_.closed;
    } else if (failure_.empty()) {
      Fail(absl::StrCat("the writer ended by itself, status ", status));
    }
    if (!failure_.empty() && where_.empty()) {
      where_ = absl::StrCat("store ", dir_, " (seed ", store_seed_, ", retention ", retention_,
                            "), life ", life, ", point \"", ending.point, "\" hit ", ending.hit,
                            ", close_after ", ending.close_after);
    }
  }

  void TakeReports() {
    size_t at = 0;
    while (in_.size() - at >= sizeof(Report)) {
      Report report;
      std::memcpy(&report, in_.data() + at, sizeof(report));
      const bool has_text = report.kind == Report::kContents || report.kind == Report::kFailed;
      if (has_text && in_.size() - at < sizeof(report) + report.number) break;
      at += sizeof(report);
      absl::string_view text;
      if (has_text) {
        text = absl::string_view(in_).substr(at, report.number);
        at += report.number;
      }
      Take(report, text);
    }
    in_.erase(0, at);
  }

  void Take(const Report& report, absl::string_view text) {
    const bool altered = report.altered != 0;
    switch (report.kind) {
      case Report::kContents: {
        const auto contents = DecodeContents(text);
        ready_ = true;
        if (!contents) return Fail("its contents cannot be decoded");
        const std::string differences = model_->Check(*contents);
        if (!differences.empty()) Fail("the store differs from the model:\n" + differences);
        return;
      }
      case Report::kSent:
        return model_->Sent(report.agent, report.number, altered);
      case Report::kStored:
        return model_->Stored(report.agent, report.number, altered);
      case Report::kRefused:
        return model_->Refused(report.agent, report.number, altered);
      case Report::kUnsure:
        return model_->Unsure(report.agent, report.number, altered);
      case Report::kResumed:
        ++totals_.resumed;
        return model_->DiskResumed();
      case Report::kGaveUp:
        ++totals_.gave_up;
        closed_ = true;
        return;
      case Report::kEnding:
        ending_ = true;
        return;
      case Report::kClosed:
        closed_ = true;
        return;
      case Report::kFailed:
        return Fail(absl::StrCat("the writer failed: ", text));
      case Report::kCutoff:
        return model_->CutOff(static_cast<int64_t>(report.number));
    }
    Fail("a report of an unknown kind");
  }

  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  int Finish() {
    uint64_t at_points = 0;
    std::vector<std::string> never;
    for (const auto& [point, kills] : totals_.kills_at) {
      at_points += kills;
      if (kills == 0) never.push_back(point);
    }
    std::cout << absl::StrFormat(
        "seed %d: %d lives of %d stores: %d kills at random moments (%d while opening, %d where an "
        "armed point was not reached), %d kills at %d named points, %d closed in order; a full "
        "disk was sat out %d times and "
        "ended the process in order %d times\n",
        flags_.seed, totals_.lives, totals_.stores, totals_.kills_random, totals_.kills_opening,
        totals_.kills_late, at_points, totals_.kills_at.size() - never.size(), totals_.closed,
        totals_.resumed, totals_.gave_up);
    std::cout << absl::StrFormat(
        "%d messages acknowledged; %d unanswered ones were found whole, %d wholly absent; %d "
        "samples checked, bit for bit\n",
        totals_.stored, totals_.unanswered_found, totals_.unanswered_absent,
        totals_.samples_checked);
    for (const auto& [point, kills] : totals_.kills_at) {
      std::cout << absl::StrFormat("  %-20s %6d%s\n", point, kills,
                                   kills == 0 ? "  never hit" : "");
    }
    if (!failure_.empty()) {
      std::cout << "FAILED: " << failure_ << "\n  at " << where_ << "\n  repeat with --seed "
                << flags_.seed << "\n";
      return 1;
    }
    if (flags_.all_points && !never.empty()) {
      std::cout << "FAILED: " << never.size() << " points were never hit\n";
      return 1;
    }
    std::cout << "nothing lost, nothing doubled, nothing changed\n";
    return 0;
  }

  const Flags flags_;
  std::mt19937_64 random_;
  Totals totals_;
  uint64_t store_seed_ = 0;
  bool retention_ = false;
  std::string dir_;
  std::unique_ptr<Model> model_;
  std::string in_;  // Read from the pipe, not yet taken.
  bool ready_ = false;
  bool ending_ = false;
  bool closed_ = false;
  std::string failure_;
  std::string where_;
};

bool Parse(int argc, char** argv, Flags* flags) {
  const bool good = testing::ParseFlags(argc, argv,
                                        {{"writer", &flags->writer},
                                         {"dir", &flags->dir},
                                         {"rounds", &flags->rounds},
                                         {"seconds", &flags->seconds},
                                         {"seed", &flags->seed},
                                         {"all-points", &flags->all_points}});
  return good && !flags->writer.empty();
}

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  if (!tacho::crash::Parse(argc, argv, &flags)) {
    std::cerr << "tacho-crash-campaign --writer PROGRAM [--dir DIR] [--rounds N] [--seconds S] "
                 "[--seed S] [--all-points]\n";
    return 2;
  }
  return tacho::crash::Campaign(std::move(flags)).Run();
}
