// The power goes at every sync, and between syncs: what was acknowledged is there once, bit for
// bit.
#include <atomic>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "storage/store.h"
#include "tests/crash/contents.h"
#include "tests/crash/model.h"
#include "tests/crash/sender.h"
#include "tests/support/power_cut_env.h"

namespace tacho::crash {
namespace {

class PowerCutTest : public ::testing::Test {
 protected:
  void Begin(uint64_t seed) {
    store_.reset();
    seed_ = seed;
    lives_ = 0;
    env_ = std::make_unique<tacho::testing::PowerCutEnv>(seed);
    model_ = std::make_unique<Model>(seed);
  }

  storage::StoreOptions Options() {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.retention = absl::ZeroDuration();
    options.seal_rows = 16;
    options.commit_spacing = absl::ZeroDuration();
    options.log = [this](absl::string_view line) {
      if (absl::StrContains(line, "cannot be told")) ++doubts_;
    };
    options.background = false;  // Sealing comes in the same places in every run, more or less.
    return options;
  }

  // Opens, sends, closes, opens, sends and closes, unless the power goes before.
  void Work(uint64_t messages) {
    for (int round = 0; round < 2 && !env_->dead(); ++round) {
      auto store = storage::Store::Open(Options());
      if (!store.ok()) break;
      store_ = *std::move(store);
      Sender sender(store_.get(),
                    {.seed = seed_,
                     .life = ++lives_,
                     .window = 4,
                     .tell = [this](Report::Kind kind, uint32_t agent, uint64_t sequence,
                                    bool altered) { Take(kind, agent, sequence, altered); },
                     .fail = [](const absl::Status& status) { ADD_FAILURE() << status; }});
      for (uint64_t i = 0; i < messages && !env_->dead(); ++i) {
        sender.SendOne();
        if (i % 16 == 15) store_->Seal().IgnoreError();
      }
      sender.AwaitAnswers();
      store_->Close().IgnoreError();
      store_.reset();
    }
  }

  void Take(Report::Kind kind, uint32_t agent, uint64_t sequence, bool altered) {
    absl::MutexLock lock(&mutex_);
    if (kind == Report::kSent) model_->Sent(agent, sequence, altered);
    if (kind == Report::kStored) model_->Stored(agent, sequence, altered);
    if (kind == Report::kRefused) model_->Refused(agent, sequence, altered);
    if (kind == Report::kUnsure) model_->Unsure(agent, sequence, altered);
  }

  // What the disk holds now, compared with the model.
  void Check(const std::string& what) {
    const std::string where = absl::StrCat(what, ", ", env_->loss());
    store_.reset();
    env_->Start();
    auto store = storage::Store::Open(Options());
    ASSERT_TRUE(store.ok()) << where << ": " << store.status();
    // The power may go between a commit and its mark, and tear the mark.
    EXPECT_EQ((*store)->Stats().missing_commits, 0u) << where;
    EXPECT_EQ(doubts_, 0) << where;
    const auto contents = ReadContents(**store);
    ASSERT_TRUE(contents.ok()) << where << ": " << contents.status();
    EXPECT_EQ(model_->Check(*contents), "") << where;
    ASSERT_TRUE((*store)->Close().ok());
  }

  std::atomic<int> doubts_ = 0;
  uint64_t seed_ = 0;
  uint64_t lives_ = 0;
  std::unique_ptr<tacho::testing::PowerCutEnv> env_;
  absl::Mutex mutex_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<storage::Store> store_;
};

TEST_F(PowerCutTest, AtEverySync) {
  uint64_t syncs = 0;
  uint64_t samples = 0;
  for (uint64_t n = 1;; ++n) {
    bool reached = false;
    for (const bool after : {false, true}) {
      Begin(n * 2 + (after ? 1 : 0));
      env_->CutAtSync(n, after);
      Work(40);
      reached = reached || env_->dead();
      Check(absl::StrCat(after ? "after" : "before", " sync ", n));
      samples += model_->samples_checked();
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    if (!reached) break;
    syncs = n;
  }
  std::cout << syncs << " syncs, " << samples << " samples checked\n";
  EXPECT_GT(syncs, 40u);
}

// One store that loses its power again and again, anywhere, also while it recovers from the last
// time.
TEST_F(PowerCutTest, AgainAndAgainAnywhere) {
  uint64_t cuts = 0;
  uint64_t samples = 0;
  std::mt19937_64 random(3);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Begin(seed * 1000);
    for (int i = 0; i < 12; ++i) {
      env_->CutAtOperation(1 + random() % (random() % 3 == 0 ? 40 : 400));
      Work(30);
      cuts += env_->dead() ? 1 : 0;
      if (random() % 3 == 0) {  // The power is back for a moment only.
        env_->Start();
        env_->CutAtOperation(1 + random() % 60);
        store_.reset();
        if (auto store = storage::Store::Open(Options()); store.ok()) store_ = *std::move(store);
        store_.reset();
        cuts += env_->dead() ? 1 : 0;
      }
      Check(absl::StrCat("seed ", seed, ", cut ", i));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
    samples += model_->samples_checked();
  }
  std::cout << cuts << " cuts, " << samples << " samples checked\n";
  EXPECT_GT(cuts, 80u);
}

}  // namespace
}  // namespace tacho::crash
