// Trainers and the agent as different users that share a group, as in docs/operations.md: the
// directory belongs to the agent, with the setgid and the sticky bit. Needs to be root.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "agent/sources/rings/ring_source.h"
#include "client/recorder.h"
#include "tests/agent/recording_sink.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;

// Numbers that no account needs to have.
constexpr uid_t kAgent = 48'001;
constexpr uid_t kTrainer = 48'002;
constexpr uid_t kOtherTrainer = 48'003;
constexpr uid_t kStranger = 48'004;
constexpr gid_t kGroup = 48'100;
constexpr gid_t kOtherGroup = 48'101;

class RingUsersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    std::string pattern = ::testing::TempDir() + "/ring_users_XXXXXX";
    root_ = mkdtemp(pattern.data());
    rings_ = root_ + "/rings";
    ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
    ASSERT_EQ(mkdir(rings_.c_str(), 0770), 0);
    ASSERT_EQ(chown(rings_.c_str(), kAgent, kGroup), 0);
    ASSERT_EQ(chmod(rings_.c_str(), 03770), 0);
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  // The exit code of `work` as that user, whose supplementary group is `group`.
  static int As(uid_t user, gid_t group, const std::function<int()>& work) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (setgroups(1, &group) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(99);
      _exit(work());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  }

  // Three rows by a trainer with a strict umask. Its ring stays.
  int Train(uid_t user) {
    return As(user, kGroup, [this] {
      umask(0077);
      auto recorder = client::Recorder::Open(
          {.directory = rings_, .job = "job", .task = 3, .attempt = 0, .ring_mode = 0640});
      if (!recorder.recording()) return 1;
      const auto loss = recorder.Gauge("loss", "", "");
      for (int64_t step = 0; step < 3; ++step) {
        recorder.Set(loss, 1);
        recorder.CommitStep(step);
      }
      return 0;
    });
  }

  std::string OnlyRing() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(rings_)) found = entry.path().string();
    return found;
  }

  std::string root_;
  std::string rings_;
};

TEST_F(RingUsersTest, AnAgentOfAnotherUserDeliversAndRemoves) {
  ASSERT_EQ(Train(kTrainer), 0);
  const std::string ring = OnlyRing();
  struct stat facts = {};
  ASSERT_EQ(stat(ring.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, kTrainer);
  EXPECT_EQ(facts.st_gid, kGroup) << "by the directory's setgid bit";
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
  const int rows = As(kAgent, kGroup, [this, &ring] {
    config::v1::Agent::Rings config;
    config.set_directory(rings_);
    config.set_poll_interval(1);
    RingOptions options;
    options.host = "host";
    RingSource source(config, std::move(options));
    testing::RecordingSink sink;
    const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
    for (int turn = 0; turn < 10 && fs::exists(ring); ++turn) {
      source.Poll(now + turn * absl::Seconds(1), &sink);
    }
    return static_cast<int>(sink.samples.size());
  });
  EXPECT_EQ(rows, 3);
  EXPECT_FALSE(fs::exists(ring));
}

TEST_F(RingUsersTest, NoOtherTrainerMayDeleteWriteOrCutIt) {
  ASSERT_EQ(Train(kTrainer), 0);
  const std::string ring = OnlyRing();
  const int done = As(kOtherTrainer, kGroup, [&ring] {
    if (unlink(ring.c_str()) == 0) return 1;
    if (truncate(ring.c_str(), 0) == 0) return 2;
    if (open(ring.c_str(), O_WRONLY) >= 0) return 3;
    return 0;
  });
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(fs::exists(ring));
}

TEST_F(RingUsersTest, AStrangerMayNeitherReadNorMakeRings) {
  ASSERT_EQ(Train(kTrainer), 0);
  const std::string ring = OnlyRing();
  const int done = As(kStranger, kOtherGroup, [this, &ring] {
    if (open(ring.c_str(), O_RDONLY) >= 0) return 1;
    const auto recorder = client::Recorder::Open({.directory = rings_, .job = "job"});
    return recorder.recording() || recorder.error().find("denied") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(done, 0);
}

}  // namespace
}  // namespace tacho::agent
