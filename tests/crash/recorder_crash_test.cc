// A trainer that is killed at any moment: every row that it had closed arrives, torn ones never.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "agent/sources/rings/ring_source.h"
#include "client/ring/ring_reader.h"
#include "tests/agent/recording_sink.h"
#include "tests/crash/dying_trainer.h"
#include "tests/crash/memory_cgroup.h"

namespace tacho::crash {
namespace {

namespace fs = std::filesystem;

class RecorderCrashTest : public ::testing::Test {
 protected:
  RecorderCrashTest() {
    std::string pattern = ::testing::TempDir() + "/recorder_crash_XXXXXX";
    options_.directory = mkdtemp(pattern.data());
    const uint32_t seed = std::random_device()();
    RecordProperty("seed", std::to_string(seed));
    random_.seed(seed);
  }
  ~RecorderCrashTest() override { fs::remove_all(options_.directory); }

  int64_t Draw(int64_t below) {
    return std::uniform_int_distribution<int64_t>(0, below - 1)(random_);
  }

  static void ExpectWholeRing(const std::string& ring, int64_t* rows, int64_t* lost) {
    const DyingRing found = ReadDyingRing(ring);
    ASSERT_EQ(found.wrong, "");
    *rows += found.rows;
    *lost += found.lost;
  }

  // One row more than it reported may have been committed.
  static void ExpectEverything(const DyingTrainer& trainer, int64_t closed) {
    int64_t rows = 0;
    int64_t lost = 0;
    ASSERT_NO_FATAL_FAILURE(ExpectWholeRing(trainer.ring(), &rows, &lost));
    EXPECT_EQ(lost, 0);
    EXPECT_GE(rows, closed);
    EXPECT_LE(rows, closed + 1);
  }

  DyingTrainerOptions options_;
  std::mt19937_64 random_;
};

// At random instructions, by the signals that end trainers.
TEST_F(RecorderCrashTest, KilledAtAnyInstruction) {
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const int signal = round % 3 == 0 ? SIGSEGV : SIGKILL;
    DyingTrainer trainer(options_);
    trainer.WaitForFirstRow();
    usleep(static_cast<useconds_t>(Draw(2000)));
    kill(trainer.pid(), signal);
    const int status = trainer.WaitForDeath();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    ExpectEverything(trainer, trainer.closed());
    fs::remove(trainer.ring());
  }
}

// The fault of a program that writes where it must not, in the middle of a row.
TEST_F(RecorderCrashTest, AFaultOfItsOwn) {
  for (int round = 0; round < 10 && !HasFailure(); ++round) {
    const int64_t last = 1 + Draw(5000);
    options_.before_row = [last](int64_t row) {
      int* volatile nowhere = nullptr;
      if (row == last) *nowhere = 1;
    };
    DyingTrainer trainer(options_);
    const int status = trainer.WaitForDeath();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
    EXPECT_EQ(trainer.closed(), last);
    int64_t rows = 0;
    int64_t lost = 0;
    ExpectWholeRing(trainer.ring(), &rows, &lost);
    EXPECT_EQ(rows, last) << "the row that was not committed is not there";
    EXPECT_EQ(lost, 0);
    fs::remove(trainer.ring());
  }
}

TEST_F(RecorderCrashTest, OutOfMemory) {
  constexpr uint64_t kLimit = 48ULL << 20;
  const MemoryCgroup cgroup(kLimit);
  if (!cgroup.trouble().empty()) GTEST_SKIP() << cgroup.trouble();
  for (int round = 0; round < 5 && !HasFailure(); ++round) {
    const size_t bite = 4096 + static_cast<size_t>(Draw(64 << 10));
    options_.before_row = [&cgroup, bite](int64_t row) {
      if (row == 0 && !cgroup.Enter()) _exit(97);
      std::memset(new char[bite], 1, bite);  // Never given back.
    };
    DyingTrainer trainer(options_);
    const int status = trainer.WaitForDeath();
    ASSERT_FALSE(WIFEXITED(status)) << "exit code " << WEXITSTATUS(status);
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    EXPECT_GT(trainer.closed(), 0);
    ExpectEverything(trainer, trainer.closed());
    fs::remove(trainer.ring());
  }
}

// Overwritten rows are counted, and what is left is whole up to the end.
TEST_F(RecorderCrashTest, KilledWhileItLapsTheRing) {
  options_.ring_bytes = 256 << 10;
  options_.max_rows = INT64_MAX;
  for (int round = 0; round < 30 && !HasFailure(); ++round) {
    DyingTrainer trainer(options_);
    trainer.WaitForFirstRow();
    while (trainer.closed() < 5000) usleep(100);
    usleep(static_cast<useconds_t>(Draw(1000)));
    kill(trainer.pid(), SIGKILL);
    trainer.WaitForDeath();
    int64_t rows = 0;
    int64_t lost = 0;
    ExpectWholeRing(trainer.ring(), &rows, &lost);
    EXPECT_GT(rows, 1000);
    EXPECT_GE(rows + lost, trainer.closed());
    EXPECT_LE(rows + lost, trainer.closed() + 1);
    fs::remove(trainer.ring());
  }
}

TEST_F(RecorderCrashTest, AnAgentThatComesLaterDeliversEveryRowAndRemovesTheRing) {
  DyingTrainer trainer(options_);
  trainer.WaitForFirstRow();
  usleep(static_cast<useconds_t>(Draw(2000)));
  kill(trainer.pid(), SIGKILL);
  trainer.WaitForDeath();
  int64_t rows = 0;
  int64_t lost = 0;
  ExpectWholeRing(trainer.ring(), &rows, &lost);
  EXPECT_GE(rows, trainer.closed());

  config::v1::Agent::Rings config;
  config.set_directory(options_.directory);
  config.set_poll_interval(1);
  agent::RingOptions options;
  options.host = "host";
  agent::RingSource source(config, std::move(options));
  agent::testing::RecordingSink sink;
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  for (int turn = 0; turn < 1000 && fs::exists(trainer.ring()); ++turn) {
    source.Poll(now += absl::Seconds(1), &sink);
  }
  EXPECT_FALSE(fs::exists(trainer.ring()));
  EXPECT_EQ(source.stats().lost_rows, 0u);
  int64_t delivered = 0;
  for (const auto& sample : sink.samples) delivered += sample.metric == "m0" ? 1 : 0;
  EXPECT_EQ(delivered, rows);
}

}  // namespace
}  // namespace tacho::crash
