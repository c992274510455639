// Kills a process that spools as an agent does, again and again, and compares what its spool holds
// afterwards with what the spool had accepted. The exit status is 0 only if nothing was wrong.
//
//   tacho-spool-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]
//
// The death of a process takes nothing from a spool: every entry that was accepted is there, under
// its sequence, with the checkpoint of the last one; one more may be, whole.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/crash/kill_campaign.h"
#include "tests/crash/spool_contents.h"
#include "tests/crash/victim_process.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

// A spool is given up after so many lives, since RocksDB's manifest grows with each.
constexpr uint64_t kLives = 60;

// The process that is killed.
int Spool(const std::string& dir, uint64_t seed, int fd) {
  const ReportPipe pipe(fd);
  std::mt19937_64 random(seed);
  agent::SpoolOptions options;
  options.path = dir;
  auto opened = agent::Spool::Open(std::move(options));
  if (!opened.ok()) return pipe.Fail(opened.status().ToString());
  agent::Spool* const spool = opened->get();
  const auto contents = ReadSpool(spool);
  if (!contents.ok()) return pipe.Fail(contents.status().ToString());
  pipe.TellText(Report::kContents, EncodeSpool(*contents));
  for (;;) {
    const uint64_t number = spool->end() - 1;
    pipe.Tell(Report::kSent, 0, number);
    absl::Status status = AppendToSpool(spool, number);
    if (!status.ok()) return pipe.Fail(status.ToString());
    pipe.Tell(Report::kStored, 0, number);
    const uint64_t chance = random() % 100;
    if (chance < 10) status = spool->Sync();
    if (chance == 10) {
      const uint64_t waiting = spool->synced_end() - std::min(spool->synced_end(), spool->begin());
      const uint64_t trimmed = spool->begin() + random() % (waiting + 1);
      pipe.Tell(Report::kCutoff, 0, trimmed);
      status = spool->Trim(trimmed);
    }
    if (!status.ok()) return pipe.Fail(status.ToString());
    if (chance > 90) ::usleep(static_cast<useconds_t>(random() % 2000));
  }
}

class Campaign {
 public:
  explicit Campaign(KillFlags flags) : flags_(std::move(flags)), random_(flags_.seed) {}

  int Run() {
    const absl::Time begin = absl::Now();
    while (failure_.empty() && !IsDone(flags_, kills_, begin)) OneSpool();
    std::cout << absl::StrFormat(
        "seed %d: %d kills of %d spools, %d of them while opening; %d entries accepted, %d "
        "compared, %d that were not answered found whole, %.0f s\n",
        flags_.seed, kills_, spools_, opening_, accepted_, compared_, unanswered_,
        absl::ToDoubleSeconds(absl::Now() - begin));
    PrintReport(kills_, accepted_, compared_, !failure_.empty());
    if (!failure_.empty()) {
      std::cout << "FAILED: " << failure_ << "\n  at " << dir_ << ", repeat with --seed "
                << flags_.seed << "\n";
      return 1;
    }
    std::cout << "nothing lost, nothing doubled, nothing changed\n";
    return 0;
  }

 private:
  void OneSpool() {
    dir_ = absl::StrCat(flags_.dir, "/spool-", spools_++);
    fs::remove_all(dir_);
    fs::create_directories(flags_.dir);
    stored_ = sent_ = generation_ = 0;
    begin_ = trimmed_ = 1;
    for (uint64_t life = 0; life < kLives && failure_.empty(); ++life) {
      const uint64_t seed = random_();
      const bool from_ready = random_() % 4 != 0;
      const auto after = absl::Microseconds(random_() % (random_() % 8 == 0 ? 100'000 : 15'000));
      const VictimLife lived = LiveAndBeKilled(
          [&](int fd) { return Spool(dir_, seed, fd); }, after, from_ready,
          [this](const Report& report, absl::string_view text) { Take(report, text); });
      if (!lived.killed) Fail(absl::StrCat("it ended by itself, wait status ", lived.status));
      if (lived.overdue) Fail("it did not open within a minute");
      ++kills_;
      if (!lived.opened) ++opening_;
    }
    if (failure_.empty()) fs::remove_all(dir_);
  }

  void Take(const Report& report, absl::string_view text) {
    switch (report.kind) {
      case Report::kContents:
        return Check(DecodeSpool(std::string(text)));
      case Report::kSent:
        sent_ = report.number + 1;
        return;
      case Report::kStored:
        stored_ = report.number + 1;
        ++accepted_;
        return;
      case Report::kCutoff:
        trimmed_ = report.number;
        return;
      default:
        return Fail(std::string(text));
    }
  }

  // Message n has the sequence n + 1.
  void Check(const SpoolContents& found) {
    const uint64_t count = found.end - 1;
    if (generation_ != 0 && found.generation != generation_) return Fail("a new generation");
    if (count < stored_ || count > sent_) {
      return Fail(absl::StrCat(count, " entries of ", stored_, " accepted and ", sent_, " tried"));
    }
    if (found.begin < begin_ || found.begin > trimmed_) {
      return Fail(
          absl::StrCat("it begins at ", found.begin, ", trimmed from ", begin_, " to ", trimmed_));
    }
    if (found.begin + found.entries.size() != found.end) return Fail("an entry is missing");
    for (size_t i = 0; i < found.entries.size(); ++i) {
      const uint64_t sequence = found.begin + i;
      if (!IsSpooled(found.entries[i], sequence - 1, sequence)) {
        return Fail(absl::StrCat("entry ", sequence, " is another one"));
      }
    }
    const std::string checkpoint = count == 0 ? "" : CheckpointOf(count - 1);
    if (found.checkpoint != checkpoint) {
      return Fail(absl::StrCat("the checkpoint is ", found.checkpoint, ", not ", checkpoint));
    }
    compared_ += found.entries.size();
    unanswered_ += count - stored_;
    generation_ = found.generation;
    stored_ = sent_ = count;
    begin_ = trimmed_ = found.begin;
  }

  void Fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  const KillFlags flags_;
  std::mt19937_64 random_;
  std::string dir_;
  std::string failure_;
  uint64_t kills_ = 0;
  uint64_t opening_ = 0;
  uint64_t spools_ = 0;
  uint64_t accepted_ = 0;
  uint64_t compared_ = 0;
  uint64_t unanswered_ = 0;
  // Of the spool that lives now: messages, and sequences.
  uint64_t generation_ = 0;
  uint64_t stored_ = 0;
  uint64_t sent_ = 0;
  uint64_t begin_ = 1;
  uint64_t trimmed_ = 1;
};

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::KillFlags flags{.dir = "/tmp/tacho-spool-kills"};
  if (!tacho::crash::ParseKillFlags(argc, argv, &flags)) {
    std::cerr << "tacho-spool-kill-campaign [--dir DIR] [--kills N] [--seconds S] [--seed S]\n";
    return 2;
  }
  return tacho::crash::Campaign(std::move(flags)).Run();
}
