// A process may end without destroying its recorder: what it recorded remains.
#include <sys/wait.h>

#include <cstdio>
#include <thread>
#include <vector>

#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::SizeIs;

struct Left {
  Everything read;
  bool closed = false;
  int status = 0;
};

// Runs `trainer` in a child, which ends in it, and reads what it left.
template <typename Trainer>
Left RunTrainer(const TestDirectory& directory, Trainer trainer) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    auto* recorder = new Recorder(Recorder::Open(SmallRing(directory)));  // Never destroyed.
    const HistogramMetric norms = recorder->Histogram("norms", "", "");
    recorder->Set(recorder->Gauge("loss", "", ""), 1);
    recorder->CommitStep(1);
    recorder->Observe(norms, 1);
    trainer(recorder);
    _exit(99);
  }
  Left left;
  waitpid(child, &left.status, 0);
  const auto reader = OpenReader(directory.path() + "/job.3." + std::to_string(child) + ".ring");
  left.read = ReadAll(reader.get());
  left.closed = reader->closed();
  return left;
}

TEST(RecorderExitTest, ExitFlushesHistogramsAndClosesTheRing) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder*) { std::exit(0); });
  EXPECT_EQ(left.status, 0);
  EXPECT_TRUE(left.closed);
  EXPECT_THAT(left.read.rows, SizeIs(1));
  EXPECT_THAT(left.read.states, SizeIs(1));
  ASSERT_THAT(left.read.events, SizeIs(1));
  EXPECT_EQ(left.read.events[0].kind, "ended");
}

// The thread that records may be in the middle of a row, so its memory is left alone.
TEST(RecorderExitTest, ExitOnAnotherThreadOnlyClosesTheRing) {
  TestDirectory directory;
  const Left left =
      RunTrainer(directory, [](Recorder*) { std::thread([] { std::exit(0); }).join(); });
  EXPECT_TRUE(left.closed);
  EXPECT_THAT(left.read.rows, SizeIs(1));
  EXPECT_THAT(left.read.states, SizeIs(0));
}

TEST(RecorderExitTest, AStatusOtherThanZeroIsRecordedAsAFailure) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder*) { std::exit(3); });
  EXPECT_TRUE(left.closed);
  ASSERT_THAT(left.read.events, SizeIs(1));
  EXPECT_EQ(left.read.events[0].kind, "exited");
  EXPECT_EQ(left.read.events[0].message, "The process returned 3");
  EXPECT_THAT(left.read.events[0].fields,
              ::testing::ElementsAre(::testing::Pair("status", "failed"),
                                     ::testing::Pair("exit_code", "3")));
}

TEST(RecorderExitTest, AnEndThatTheTrainerRecordedStandsWhateverTheStatus) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder* recorder) {
    recorder->Event("ended", "Done.");
    std::exit(3);
  });
  EXPECT_TRUE(left.closed);
  ASSERT_THAT(left.read.events, SizeIs(1));
  EXPECT_EQ(left.read.events[0].kind, "ended");
}

TEST(RecorderExitTest, AFailureOnAnotherThreadLeavesTheRingOpen) {
  TestDirectory directory;
  const Left left =
      RunTrainer(directory, [](Recorder*) { std::thread([] { std::exit(3); }).join(); });
  EXPECT_FALSE(left.closed) << "so that the agent takes it for a failure";
  EXPECT_THAT(left.read.events, SizeIs(0));
}

TEST(RecorderExitTest, AThreadThatIsLeftAloneMayWriteTheEnd) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder* recorder) {
    std::thread([recorder] {
      recorder->LeaveToExit();
      std::exit(3);
    }).join();
  });
  EXPECT_TRUE(left.closed);
  ASSERT_THAT(left.read.events, SizeIs(1));
  EXPECT_EQ(left.read.events[0].kind, "exited");
  EXPECT_THAT(left.read.states, SizeIs(1));
}

TEST(RecorderExitTest, AChildOfTheTrainerThatExitsLeavesTheRingOpen) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder*) {
    const pid_t grandchild = fork();
    if (grandchild == 0) std::exit(0);
    int status = 0;
    waitpid(grandchild, &status, 0);
    _exit(status);
  });
  EXPECT_EQ(left.status, 0);
  EXPECT_FALSE(left.closed);
  EXPECT_THAT(left.read.states, SizeIs(0));
}

TEST(RecorderExitTest, ADestroyedRecorderIsNotTouchedAtExit) {
  TestDirectory directory;
  const Left left = RunTrainer(directory, [](Recorder* recorder) {
    delete recorder;
    std::exit(0);
  });
  EXPECT_EQ(left.status, 0);
  EXPECT_TRUE(left.closed);
  EXPECT_THAT(left.read.states, SizeIs(1));
}

TEST(RecorderExitTest, ManyRecordersAreAllClosed) {
  TestDirectory directory;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // Never destroyed. A static holds them, so that they are no leak.
    static auto& recorders = *new std::vector<Recorder>();
    for (uint32_t task = 0; task < 70; ++task) {
      RecorderOptions options = SmallRing(directory);
      options.task = task;
      recorders.push_back(Recorder::Open(options));
      if (!recorders.back().recording()) _exit(1);
    }
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  int closed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    const auto reader = OpenReader(entry.path().string());
    ASSERT_TRUE(reader->Read({}).ok());
    closed += reader->closed() ? 1 : 0;
  }
  EXPECT_EQ(closed, 64) << "those beyond the limit are left as they are";
}

}  // namespace
}  // namespace tacho::client
