// Some lives work on a file system with a point before each operation on a file, most on the real
// one as it is.
#include "tests/crash/writer.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/bucket/bucket_options.h"
#include "storage/codec/keys.h"
#include "storage/db/crash_point.h"
#include "storage/history/piece_cache.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/crash_env.h"
#include "tests/crash/plan.h"
#include "tests/crash/sender.h"
#include "tests/crash/wire.h"
#include "tests/support/fake_object_store.h"

namespace tacho::crash {
namespace {

class Writer {
 public:
  Writer(WriterOptions options, int fd)
      : options_(std::move(options)),
        pipe_(fd),
        hits_left_(static_cast<int64_t>(options_.hit)),
        random_(options_.seed * 7 + options_.life),
        env_([this](absl::string_view point) { At(point); }) {}

  int Run() {
    std::filesystem::create_directories(options_.dir);
    OpenBucket();
    auto store = storage::Store::Open(StoreOptionsOf());
    if (!store.ok()) return pipe_.Fail(store.status().ToString());
    store_ = *std::move(store);
    if (const uint64_t missing = store_->Stats().missing_commits; missing > 0) {
      return pipe_.Fail(absl::StrCat(missing, " commits are said to be missing after a kill"));
    }
    const auto contents = ReadContents(*store_);
    if (!contents.ok()) return pipe_.Fail("reading: " + contents.status().ToString());
    pipe_.TellText(Report::kContents, EncodeContents(*contents));
    Sender sender(store_.get(),
                  {.seed = options_.seed,
                   .life = options_.life,
                   .window = 1 + random_() % 32,
                   .tell = [this](Report::Kind kind, uint32_t agent, uint64_t sequence,
                                  bool altered) { pipe_.Tell(kind, agent, sequence, altered); },
                   .fail =
                       [this](const absl::Status& status) {
                         std::_Exit(pipe_.Fail("a message was refused: " + status.ToString()));
                       }});
    for (uint64_t sent = 0; options_.close_after == 0 || sent < options_.close_after; ++sent) {
      if (options_.full && sent == 10) env_.SetFull(true);
      if (options_.full && sent == 40) env_.SetFull(false);
      Advance(sender.SendOne());
      const uint64_t chance = random_() % 100;
      if (chance < 2) Expect(store_->Seal());
      if (chance == 2) Expect(store_->EnforceRetention());
      // The background does it too, but its first round comes after a minute.
      if (chance == 3 && bucket_ != nullptr) Expect(store_->CommitShared());
      if (chance % 4 == 3) ::usleep(static_cast<useconds_t>(random_() % 1500));
    }
    env_.SetFull(false);
    while (refusing_ || (options_.full && IsRefusing())) ::usleep(1000);
    if (random_() % 2 == 0) sender.AwaitAnswers();
    Expect(store_->Close());
    pipe_.Tell(Report::kClosed);
    store_.reset();
    return 0;
  }

 private:
  storage::StoreOptions StoreOptionsOf() {
    storage::StoreOptions options;
    options.path = options_.dir;
    if (options_.full || absl::StartsWith(options_.point, "io.")) options.env = &env_;
    options.retention = options_.retention ? absl::Hours(48) : absl::ZeroDuration();
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
      if (state == storage::DiskState::kWritable) pipe_.Tell(Report::kResumed);
      if (state == storage::DiskState::kFailed) {
        pipe_.Tell(Report::kGaveUp);
        std::_Exit(0);
      }
    };
    options.at_point = [this](absl::string_view point) { At(point); };
    if (options_.retention) options.now = [this] { return absl::FromUnixNanos(now_ns_); };
    if (bucket_ != nullptr) {
      options.history = {.bucket = bucket_.get(), .pieces = pieces_.get(), .owner = "campaign"};
      options.shared.on = true;
      options.shared.interval = absl::Milliseconds(random_() % 20);
      options.shared.on_ended = [this](const absl::Status& why) {
        std::_Exit(pipe_.Fail("acknowledgements ended: " + why.ToString()));
      };
    }
    return options;
  }

  // Not probed: that would take longer than the life of the process.
  void OpenBucket() {
    if (options_.url.empty()) return;
    ::setenv("AWS_ACCESS_KEY_ID", testing::FakeObjectStore::kKeyId, 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", testing::FakeObjectStore::kSecret, 1);
    auto bucket = storage::OpenBucket({.url = options_.url,
                                       .endpoint = options_.endpoint,
                                       .path_style = true,
                                       .credentials = "environment"});
    auto pieces = storage::PieceCache::Open({.path = absl::StrCat(options_.dir, "-pieces")});
    Expect(bucket.status());
    Expect(pieces.status());
    bucket_ = *std::move(bucket);
    pieces_ = *std::move(pieces);
  }

  bool IsRefusing() {
    storage::LayoutDefinition none;
    return absl::IsUnavailable(store_->RegisterLayout(none).status());
  }

  // The clock follows what is sent, so that days can be dropped.
  void Advance(uint64_t newest) {
    if (!options_.retention) return;
    const int64_t now = kBeginNs + static_cast<int64_t>(newest) * kGridNs;
    if (now <= now_ns_) return;
    const int64_t cutoff = storage::DayOf(now - absl::ToInt64Nanoseconds(absl::Hours(48)));
    pipe_.Tell(Report::kCutoff, 0, static_cast<uint64_t>(cutoff * storage::kDayNs), false);
    now_ns_ = now;
  }

  void At(absl::string_view point) {
    if (point != options_.point || hits_left_.fetch_sub(1) != 1) return;
    pipe_.Tell(Report::kEnding);
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  void Expect(const absl::Status& status) const {
    // A full disk refuses these too; Close() only comes when it has room again.
    if (absl::IsUnavailable(status) && options_.full) return;
    if (!status.ok()) std::_Exit(pipe_.Fail(status.ToString()));
  }

  const WriterOptions options_;
  const ReportPipe pipe_;
  std::atomic<int64_t> hits_left_;
  std::mt19937_64 random_;
  std::atomic<bool> refusing_ = false;
  CrashEnv env_;
  std::atomic<int64_t> now_ns_ = kBeginNs;
  std::unique_ptr<storage::Bucket> bucket_;  // Null: there is none.
  std::unique_ptr<storage::PieceCache> pieces_;
  std::unique_ptr<storage::Store> store_;
};

}  // namespace

int RunWriter(const WriterOptions& options, int fd) { return Writer(options, fd).Run(); }

}  // namespace tacho::crash
