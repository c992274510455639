// The process that the crash campaign kills: opens a store, reports what it holds, then writes to
// it until it is killed, kills itself at a named point, or has written enough and closes.
//
//   writer KEY=VALUE...   dir, fd, seed, life, point (name), hit (n-th), retention, close_after
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/codec/keys.h"
#include "storage/db/crash_point.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/crash_env.h"
#include "tests/crash/plan.h"
#include "tests/crash/sender.h"
#include "tests/crash/wire.h"

namespace tacho::crash {
namespace {

struct Flags {
  std::map<std::string, std::string> values;
  std::string Text(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
  uint64_t Number(const std::string& key) const {
    uint64_t number = 0;
    return absl::SimpleAtoi(Text(key), &number) ? number : 0;
  }
};

class Writer {
 public:
  explicit Writer(const Flags& flags)
      : fd_(static_cast<int>(flags.Number("fd"))),
        seed_(flags.Number("seed")),
        life_(flags.Number("life")),
        point_(flags.Text("point")),
        hits_left_(static_cast<int64_t>(flags.Number("hit"))),
        retention_(flags.Number("retention") != 0),
        close_after_(flags.Number("close_after")),
        full_(flags.Number("full") != 0),
        dir_(flags.Text("dir")),
        random_(seed_ * 7 + life_),
        env_([this](absl::string_view point) { At(point); }) {}

  int Run() {
    std::filesystem::create_directories(dir_);
    auto store = storage::Store::Open(Options());
    if (!store.ok()) return Fail(store.status().ToString());
    store_ = *std::move(store);
    if (const uint64_t missing = store_->Stats().missing_commits; missing > 0) {
      return Fail(absl::StrCat(missing, " commits are said to be missing after a kill"));
    }
    const auto contents = ReadContents(*store_);
    if (!contents.ok()) return Fail("reading: " + contents.status().ToString());
    TellText(Report::kContents, EncodeContents(*contents));
    Sender sender(store_.get(),
                  {.seed = seed_,
                   .life = life_,
                   .window = 1 + random_() % 32,
                   .tell = [this](Report::Kind kind, uint32_t agent, uint64_t sequence,
                                  bool altered) { Tell(kind, agent, sequence, altered); },
                   .fail =
                       [this](const absl::Status& status) {
                         std::_Exit(Fail("a message was refused: " + status.ToString()));
                       }});
    for (uint64_t sent = 0; close_after_ == 0 || sent < close_after_; ++sent) {
      if (full_ && sent == 10) env_.SetFull(true);
      if (full_ && sent == 40) env_.SetFull(false);
      Advance(sender.SendOne());
      const uint64_t chance = random_() % 100;
      if (chance < 2) Expect(store_->Seal());
      if (chance == 2) Expect(store_->EnforceRetention());
      if (chance % 4 == 3) ::usleep(static_cast<useconds_t>(random_() % 1500));
    }
    env_.SetFull(false);
    while (refusing_ || (full_ && IsRefusing())) ::usleep(1000);
    if (random_() % 2 == 0) sender.AwaitAnswers();
    Expect(store_->Close());
    Tell(Report::kClosed, 0, 0, false);
    store_.reset();
    return 0;
  }

 private:
  storage::StoreOptions Options() {
    storage::StoreOptions options;
    options.path = dir_;
    // Half of all lives on the real thing, half where each operation on a file is a point.
    if (full_ || absl::StartsWith(point_, "io.")) options.env = &env_;
    options.retention = retention_ ? absl::Hours(48) : absl::ZeroDuration();
    options.seal_rows = 16 << (random_() % 3);
    options.seal_age = absl::Milliseconds(random_() % 2 == 0 ? 20 : 600'000);
    options.commit_spacing = absl::Milliseconds(random_() % 4);
    options.queue_bytes = random_() % 4 == 0 ? 2048 : 1 << 20;
    if (random_() % 3 == 0) {
      options.open_bytes = 16 << 10;
      options.journal_bytes = 16 << 10;
    }
    // Then what an earlier life has left small is merged at the start of this one.
    if (random_() % 2 == 0) options.merge_quiet = absl::ZeroDuration();
    options.block_cache_bytes = 1 << 20;
    options.on_disk = [this](storage::DiskState state, const absl::Status&) {
      refusing_ = state == storage::DiskState::kRefusing;
      if (state == storage::DiskState::kWritable) Tell(Report::kResumed, 0, 0, false);
      if (state == storage::DiskState::kFailed) {
        Tell(Report::kGaveUp, 0, 0, false);
        std::_Exit(0);
      }
    };
    options.at_point = [this](absl::string_view point) { At(point); };
    if (retention_) options.now = [this] { return absl::FromUnixNanos(now_ns_); };
    return options;
  }

  bool IsRefusing() {
    storage::LayoutDefinition none;
    return absl::IsUnavailable(store_->RegisterLayout(none).status());
  }

  // The clock follows what is sent, so that days can be dropped.
  void Advance(uint64_t newest) {
    if (!retention_) return;
    const int64_t now = kBeginNs + static_cast<int64_t>(newest) * kGridNs;
    if (now <= now_ns_) return;
    const int64_t cutoff = storage::DayOf(now - absl::ToInt64Nanoseconds(absl::Hours(48)));
    Tell(Report::kCutoff, 0, static_cast<uint64_t>(cutoff * storage::kDayNs), false);
    now_ns_ = now;
  }

  void At(absl::string_view point) {
    if (point != point_ || hits_left_.fetch_sub(1) != 1) return;
    Tell(Report::kEnding, 0, 0, false);
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  void WriteAll(const char* bytes, size_t size) const {
    while (size > 0) {
      const ssize_t written = ::write(fd_, bytes, size);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) std::_Exit(3);  // The campaign is gone.
      bytes += written;
      size -= static_cast<size_t>(written);
    }
  }
  void Tell(Report::Kind kind, uint32_t agent, uint64_t number, bool altered,
            const std::string& text = "") const {
    const std::lock_guard<std::mutex> lock(wire_);
    const Report report{kind, static_cast<uint8_t>(agent), altered, {}, number};
    WriteAll(reinterpret_cast<const char*>(&report), sizeof(report));
    WriteAll(text.data(), text.size());
  }
  void TellText(Report::Kind kind, const std::string& text) const {
    Tell(kind, 0, text.size(), false, text);
  }
  int Fail(const std::string& why) const {
    TellText(Report::kFailed, why);
    return 1;
  }
  void Expect(const absl::Status& status) const {
    // A full disk refuses these too; Close() only comes when it has room again.
    if (absl::IsUnavailable(status) && full_) return;
    if (!status.ok()) std::_Exit(Fail(status.ToString()));
  }

  const int fd_;
  const uint64_t seed_;
  const uint64_t life_;
  const std::string point_;
  std::atomic<int64_t> hits_left_;
  const bool retention_;
  const uint64_t close_after_;
  const bool full_;  // The disk is, for a while.
  const std::string dir_;
  std::mt19937_64 random_;
  mutable std::mutex wire_;
  std::atomic<bool> refusing_ = false;
  CrashEnv env_;
  std::atomic<int64_t> now_ns_ = kBeginNs;
  std::unique_ptr<storage::Store> store_;
};

}  // namespace
}  // namespace tacho::crash

int main(int argc, char** argv) {
  tacho::crash::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const size_t equals = flag.find('=');
    if (equals == std::string::npos) {
      std::cerr << "not KEY=VALUE: " << flag << "\n";
      return 2;
    }
    flags.values[flag.substr(0, equals)] = flag.substr(equals + 1);
  }
  return tacho::crash::Writer(flags).Run();
}
