// A recorder survives what others do to it: fill its disk, delete its directory, cut its file
// short.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::SizeIs;

void RecordSome(Recorder* recorder, int64_t begin, int64_t end) {
  const Metric loss = recorder->Gauge("loss", "", "");
  for (int64_t step = begin; step < end; ++step) {
    recorder->Set(loss, 1);
    recorder->CommitStep(step);
  }
}

TEST(RecorderTroubleTest, ADeletedDirectoryChangesNothingForTheTrainerNorForAnAgentThatReads) {
  TestDirectory directory;
  Recorder recorder = Recorder::Open(SmallRing(directory));
  RecordSome(&recorder, 0, 10);
  const auto reader = OpenReader(recorder.path());
  std::filesystem::remove_all(directory.path());
  RecordSome(&recorder, 10, 20);
  recorder.Event("ended", "");
  EXPECT_THAT(ReadAll(reader.get()).rows, SizeIs(20));
  EXPECT_EQ(recorder.refused(), 0u);
}

// The training must go on without its record.
TEST(RecorderTroubleTest, ADirectoryWithoutRoomIsSaidAndLeavesNothingBehind) {
  TestDirectory directory;
  constexpr int kNotPermitted = 77;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // A file system of its own, which goes with the process. 256 KiB and the rest do not fit.
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=320k") != 0) {
      _exit(kNotPermitted);
    }
    Recorder recorder = Recorder::Open(SmallRing(directory));
    RecordSome(&recorder, 0, 10);
    const bool said = recorder.error().find("No space left") != std::string::npos;
    const bool empty = std::filesystem::is_empty(directory.path());
    _exit(!recorder.recording() && said && empty ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted) {
    GTEST_SKIP() << "no file system may be mounted here";
  }
  EXPECT_EQ(status, 0);
}

// No process survives this. Only the ring's own user and root may do it, and tacho-agent never
// does; the test keeps the documentation true.
TEST(RecorderTroubleTest, AFileThatIsCutShortEndsTheTrainerAtItsNextRow) {
  TestDirectory directory;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);  // A sanitizer would have its own handler.
    constexpr rlimit kNoCore = {0, 0};
    setrlimit(RLIMIT_CORE, &kNoCore);
    Recorder recorder = Recorder::Open(SmallRing(directory));
    if (truncate(recorder.path().c_str(), kRingHeaderBytes) != 0) _exit(1);
    RecordSome(&recorder, 0, 1);
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
}

}  // namespace
}  // namespace tacho::client
