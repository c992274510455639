// How a task ends, as the agent tells it: by closed rings, and by processes that are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "client/recorder.h"
#include "tests/agent/sources/rings/ring_source_fixture.h"

namespace tacho::agent {
namespace {

namespace fs = std::filesystem;
using ::tacho::client::Recorder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A process that records, and waits for its end.
class Trainer {
 public:
  // `then` runs once three rows are recorded.
  Trainer(const std::string& directory, const std::function<void()>& then) {
    std::array<int, 2> ready = {};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      auto recorder =
          Recorder::Open({.directory = directory, .job = "job", .task = 3, .attempt = 2});
      const auto loss = recorder.Gauge("loss", "1", "");
      for (int step = 0; step < 3; ++step) {
        recorder.Set(loss, step);
        recorder.CommitStep(step);
      }
      if (write(ready[1], "r", 1) != 1) _exit(99);
      then();
      for (;;) pause();
    }
    char byte = 0;
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer() { Collect(); }

  void Kill() const { kill(pid_, SIGKILL); }
  // Waits until it is a zombie, which it stays.
  void AwaitDeath() const {
    siginfo_t about = {};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOWAIT), 0);
  }
  void Collect() {
    if (pid_ == 0) return;
    Kill();
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

void Nothing() {}

class RingEndTest : public testing::RingSourceFixture {
 protected:
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const v1::Event& event : sink_.events) kinds.push_back(event.kind());
    return kinds;
  }
  std::string Field(const std::string& name) const {
    const auto& fields = sink_.events.back().fields();
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second;
  }
  int64_t NowNs() const { return absl::ToUnixNanos(now_); }
};

TEST_F(RingEndTest, AClosedRingIsTheEndOfItsTask) {
  now_ = absl::Now();
  {
    Recorder recorder = Open();
    Record(&recorder, 0, 3);
    Cycle();
    EXPECT_THAT(Kinds(), IsEmpty()) << "it lives";
  }
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("ended"));
  const v1::Event& ended = sink_.events[0];
  EXPECT_EQ(ended.source().job(), "job");
  EXPECT_EQ(ended.source().task(), 3u);
  EXPECT_EQ(ended.source().attempt(), 2u);
  EXPECT_EQ(ended.source().host(), "host-a");
  EXPECT_EQ(ended.time_unix_ns(), NowNs());
  Cycle();
  Restart();
  Cycle();
  EXPECT_THAT(Kinds(), SizeIs(1));
}

TEST_F(RingEndTest, AnEndThatTheTrainerRecordsIsNotToldAgain) {
  for (const char* kind : {"ended", "exited"}) {
    sink_.events.clear();
    {
      Recorder recorder = Open();
      Record(&recorder, 0, 3);
      recorder.Event(kind, "All is done.");
      Restart();  // What an earlier agent handed on counts.
      Cycle();
    }
    Restart();
    Cycle();
    EXPECT_THAT(Kinds(), ElementsAre(kind));
  }
}

TEST_F(RingEndTest, RowsAfterARecordedEndShowThatItWasNone) {
  {
    Recorder recorder = Open();
    recorder.Event("ended", "The first part.");
    Record(&recorder, 0, 3);
  }
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended", "ended"));
}

TEST_F(RingEndTest, AnAgentThatWasDownDatesTheEndByTheLastRow) {
  now_ = absl::Now() + absl::Hours(1);
  {
    Recorder recorder = Open();
    Record(&recorder, 0, 3);
  }
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("ended"));
  EXPECT_EQ(sink_.events[0].time_unix_ns(), sink_.samples.back().time_ns);
}

TEST_F(RingEndTest, TheEndWaitsForRoomAndIsToldOnceOverACrash) {
  std::string path;
  const std::string copy = root_ + "/copy";
  {
    Recorder recorder = Open();
    path = recorder.path();
    Record(&recorder, 0, 3);
  }
  fs::copy_file(path, copy);
  sink_.RefuseAfter(1);  // The rows alone.
  Cycle();
  EXPECT_THAT(Kinds(), IsEmpty());
  EXPECT_TRUE(fs::exists(path));
  sink_.RefuseAfter(1);  // The event, but not that the ring is gone.
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended"));
  sink_.RefuseNothing();
  fs::rename(copy, path);  // As if the agent had crashed before it removed the ring.
  Restart();
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended"));
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RingEndTest, ATaskThatGoesOnInAnotherRingHasNotEnded) {
  Recorder second;
  {
    Recorder first = Open();
    Record(&first, 0, 3);
    second = Open();
    Record(&second, 3, 4);
    Cycle();
  }
  Cycle();
  EXPECT_THAT(Kinds(), IsEmpty());
  second = Recorder();
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended"));
}

// A child of the trainer has the lock of a ring that the trainer closed before its next one.
TEST_F(RingEndTest, AClosedRingThatAChildHoldsDoesNotHideTheNextEnd) {
  now_ = absl::Now();
  pid_t child = 0;
  {
    Recorder first = Open();
    Record(&first, 0, 3);
    child = fork();
    if (child == 0) {
      for (;;) pause();
    }
  }
  const absl::Cleanup end_child = [child] {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  };
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended"));
  {
    Recorder second = Open();
    Record(&second, 3, 4);
  }
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended", "ended"));
}

// Two rings of one attempt overlap, and a child keeps the lock of the one that was closed first.
TEST_F(RingEndTest, TheRingThatGoesOnTellsTheEndAlone) {
  now_ = absl::Now();
  Recorder first = Open();
  Record(&first, 0, 3);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const absl::Cleanup end_child = [child] {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  };
  Recorder second = Open();
  Record(&second, 3, 4);
  first = Recorder();
  Cycle();
  EXPECT_THAT(Kinds(), IsEmpty());
  second = Recorder();
  Cycle();
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended"));
  Restart();
  Cycle();
  EXPECT_THAT(Kinds(), ElementsAre("ended")) << "a restart of the agent repeats it";
}

TEST_F(RingEndTest, AKilledTrainerHasExitedByItsSignal) {
  Trainer trainer(root_, Nothing);
  Cycle();
  EXPECT_THAT(Kinds(), IsEmpty());
  trainer.Kill();
  trainer.AwaitDeath();
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("exited"));
  EXPECT_EQ(Field("signal"), "9");
  EXPECT_EQ(sink_.events[0].message(), "SIGKILL ended the process");
  EXPECT_EQ(sink_.events[0].source().task(), 3u);
  EXPECT_EQ(Steps().size(), 3u);
}

TEST_F(RingEndTest, ATrainerThatLeavesWithoutClosingHasExitedWithItsCode) {
  Trainer trainer(root_, [] { _exit(7); });
  trainer.AwaitDeath();
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("exited"));
  EXPECT_EQ(Field("exit_code"), "7");
}

// Before Linux 6.15 nobody but the parent learns it then.
TEST_F(RingEndTest, AStatusThatTheParentHasTakenIsNeverInvented) {
  Trainer trainer(root_, Nothing);
  Cycle();
  trainer.Collect();
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("exited"));
  EXPECT_EQ(Field("exit_code"), "");
  if (Field("signal").empty()) {
    EXPECT_THAT(sink_.events[0].message(), ::testing::HasSubstr("is not known"));
  } else {
    EXPECT_EQ(Field("signal"), "9");
  }
}

TEST_F(RingEndTest, ATrainerThatDiedWhileTheAgentWasDownHasExited) {
  Trainer trainer(root_, Nothing);
  trainer.Collect();
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("exited"));
  EXPECT_THAT(sink_.events[0].message(), ::testing::HasSubstr("is not known"));
  EXPECT_EQ(sink_.events[0].time_unix_ns(), sink_.samples.back().time_ns);
}

TEST_F(RingEndTest, AChildThatLivesOnWithTheLockDoesNotHideTheDeath) {
  std::array<int, 2> child_pid = {};
  ASSERT_EQ(pipe(child_pid.data()), 0);
  Trainer trainer(root_, [&child_pid] {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    if (write(child_pid[1], &child, sizeof(child)) != sizeof(child)) _exit(99);
  });
  pid_t child = 0;
  ASSERT_EQ(read(child_pid[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  const absl::Cleanup end_child = [&] {
    kill(child, SIGKILL);
    for (const int end : child_pid) close(end);
  };
  Cycle();
  EXPECT_THAT(Kinds(), IsEmpty());
  trainer.Kill();
  trainer.AwaitDeath();
  Cycle();
  ASSERT_THAT(Kinds(), ElementsAre("exited"));
  EXPECT_EQ(Field("signal"), "9");
}

}  // namespace
}  // namespace tacho::agent
