// Kills a process that writes to a store, again and again, and compares what its store holds
// afterwards with a model kept here. Ends with a report; the exit status is 0 only if nothing was
// wrong.
//
//   tacho-crash-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S] [--samples N]
//   [--all-points] [--bucket]
//
// With --bucket acknowledgements wait for a bucket (cluster.ack: shared), and every second kill
// takes the disk along: what was acknowledged must be there all the same.
//
// --samples gives a store up when it holds this many: each life reads it as a whole, so that small
// ones make more kills, and large ones have more in their files. --all-points also fails if a named
// point was never hit. A failure names the seed to repeat, and leaves the directory as it is.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
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
#include "tests/crash/kill_campaign.h"
#include "tests/crash/model.h"
#include "tests/crash/object_store.h"
#include "tests/crash/victim_process.h"
#include "tests/crash/wire.h"
#include "tests/crash/writer.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

struct Flags : KillFlags {
  uint64_t samples = 10'000;
  bool all_points = false;
  bool bucket = false;
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
  uint64_t disks_lost = 0;
  uint64_t gave_up = 0;  // It was not, and the process ended.
  uint64_t resumed = 0;  // A full disk that was sat out.
  uint64_t stores = 0;
  uint64_t stored = 0;
  uint64_t samples_stored = 0;
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
    if (!flags_.bucket) return;
    for (const absl::string_view point : storage::crash_point::kAllShared) {
      totals_.kills_at[std::string(point)] = 0;
    }
    // Such a store is not opened on a full disk.
    totals_.kills_at.erase(storage::crash_point::kResumed);
    totals_.kills_at.erase(storage::crash_point::kResumeKept);
  }

  int Run() {
    begin_ = told_ = absl::Now();
    while (!IsDone()) {
      NewStore();
      const uint64_t lives = 20 + random_() % 40;
      uint64_t life = 0;
      while (life < lives && !IsDone() && model_->samples() < flags_.samples) {
        Live(life++, DrawEnding());
        TellProgress();
      }
      // The last kill is checked too.
      if (failure_.empty()) Live(life, {.close_after = 1, .kill_after = absl::Seconds(60)});
      totals_.stored += model_->stored();
      totals_.samples_stored += model_->samples_stored();
      totals_.samples_checked += model_->samples_checked();
      totals_.unanswered_found += model_->unanswered_found();
      totals_.unanswered_absent += model_->unanswered_absent();
      if (failure_.empty()) fs::remove_all(dir_);
    }
    return Finish();
  }

 private:
  uint64_t Kills() const {
    uint64_t kills = totals_.kills_random;
    for (const auto& [point, at_point] : totals_.kills_at) kills += at_point;
    return kills;
  }
  bool IsDone() const { return !failure_.empty() || crash::IsDone(flags_, Kills(), begin_); }
  void TellProgress() {
    if (absl::Now() - told_ < absl::Minutes(1)) return;
    told_ = absl::Now();
    std::cout << totals_.lives << " lives, " << Kills() << " kills" << std::endl;
  }

  void NewStore() {
    store_seed_ = random_();
    retention_ = random_() % 3 == 0;
    dir_ = absl::StrCat(flags_.dir, "/store-", totals_.stores++);
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    if (flags_.bucket) object_store_ = std::make_unique<ObjectStore>();
    model_ = std::make_unique<Model>(store_seed_);
  }

  Ending DrawEnding() {
    Ending ending;
    const uint64_t way = random_() % 100;
    if (way < 50) {
      ending.from_ready = random_() % 3 != 0;
      // Mostly soon: a life that goes on does more of the same.
      ending.kill_after = absl::Microseconds(random_() % (random_() % 8 == 0 ? 120'000 : 20'000));
      return ending;
    }
    if (way < 54) {
      ending.close_after = 1 + random_() % 60;
      ending.kill_after = absl::Seconds(60);
      return ending;
    }
    // A point: any, or one of those that were hit least.
    std::vector<std::pair<uint64_t, std::string>> points;
    for (const auto& [point, hits] : totals_.kills_at) points.emplace_back(hits, point);
    std::sort(points.begin(), points.end());
    ending.point = points[random_() % (random_() % 2 == 0 ? 6 : points.size())].second;
    if (absl::StartsWith(ending.point, "shared.") && ending.point != "shared.exported") {
      ending.hit = 1;
    } else if (absl::StartsWith(ending.point, "open.")) {
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
    // Long enough for most moments; some come only after hundreds of messages.
    ending.kill_after = absl::Milliseconds(random_() % 8 == 0 ? 700 : 150);
    ending.from_ready = true;
    return ending;
  }

  void Live(uint64_t life, const Ending& ending) {
    ++totals_.lives;
    ready_ = ending_ = closed_ = false;
    // A process that gave its disk up has not acknowledged what is not in the bucket either.
    if (flags_.bucket && life > 0 && random_() % 2 == 0) {
      fs::remove_all(dir_);
      ++totals_.disks_lost;
    }
    const bool full =
        !flags_.bucket && (absl::StartsWith(ending.point, "resume.") || random_() % 8 == 0);
    const WriterOptions writer{.dir = dir_,
                               .seed = store_seed_,
                               .life = life,
                               .point = ending.point,
                               .hit = ending.hit,
                               .retention = retention_,
                               .full = full,
                               .close_after = ending.close_after,
                               .endpoint = flags_.bucket ? object_store_->endpoint() : "",
                               .url = flags_.bucket ? "s3://tests/store" : ""};
    const VictimLife lived = LiveAndBeKilled(
        [&writer](int fd) { return RunWriter(writer, fd); }, ending.kill_after, ending.from_ready,
        [this](const Report& report, absl::string_view text) { Take(report, text); });
    if (lived.overdue) Fail("the store did not open within a minute");
    Judge(life, ending, lived.killed, lived.status);
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
    const uint64_t at_points = Kills() - totals_.kills_random;
    std::vector<std::string> never;
    for (const auto& [point, kills] : totals_.kills_at) {
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
        "%d messages of %d samples acknowledged; %d unanswered ones were found whole, %d wholly "
        "absent; %d samples checked, bit for bit\n",
        totals_.stored, totals_.samples_stored, totals_.unanswered_found, totals_.unanswered_absent,
        totals_.samples_checked);
    if (flags_.bucket) {
      std::cout << absl::StrFormat("%d times the disk was lost\n", totals_.disks_lost);
    }
    PrintReport(Kills(), totals_.samples_stored, totals_.samples_checked, !failure_.empty());
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
  std::unique_ptr<ObjectStore> object_store_;  // With flags_.bucket.
  std::unique_ptr<Model> model_;
  absl::Time begin_;
  absl::Time told_;
  bool ready_ = false;
  bool ending_ = false;
  bool closed_ = false;
  std::string failure_;
  std::string where_;
};

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  flags.dir = "/tmp/tacho-crash";
  if (!tacho::crash::ParseKillFlags(argc, argv, &flags,
                                    {{"samples", &flags.samples},
                                     {"all-points", &flags.all_points},
                                     {"bucket", &flags.bucket}})) {
    std::cerr << "tacho-crash-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S] "
                 "[--samples N] [--all-points] [--bucket]\n";
    return 2;
  }
  return tacho::crash::Campaign(std::move(flags)).Run();
}
