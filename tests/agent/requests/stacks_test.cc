// The texts that stacks are read from, and the file that a trainer writes them to.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/requests/kernel_stacks.h"
#include "agent/requests/python_stacks.h"
#include "agent/requests/stacks_file.h"
#include "client/ring/ring_file.h"
#include "proto/base/clock.h"

namespace tacho::agent {
namespace {

// As Python 3.11 writes it.
constexpr char kDump[] = R"(Thread 0x00007f3e2bfff6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 975 in run
  File "/train/data.py", line 7 in fetch
Current thread 0x00007f3e34d5f040 (most recent call first):
  File "/train/loop.py", line 12 in all_reduce
  File "/train/loop.py", line 40 in <module>
)";

TEST(PythonStacksTest, ReadsThreadsAndFramesOfFaultHandlerWithTheMainThreadLast) {
  const auto threads = ParseFaultHandler(kDump);
  ASSERT_EQ(threads.size(), 2);
  ASSERT_EQ(threads[0].frames.size(), 2);
  ASSERT_EQ(threads[1].frames.size(), 2);
  EXPECT_EQ(threads[1].frames[0].file(), "/train/loop.py");
  EXPECT_EQ(threads[1].frames[0].function(), "all_reduce");
  EXPECT_EQ(threads[1].frames[0].line(), 12);
  EXPECT_EQ(threads[1].frames[1].function(), "<module>");
}

TEST(PythonStacksTest, ReadsNamesOfThreadsAndPassesOverWhatItDoesNotKnow) {
  const auto threads = ParseFaultHandler(
      "garbage\n  File \"/a.py\", line 1 in before_any_thread\n"
      "Thread 0x0000000000000001 [loader] (most recent call first):\n  <no Python frame>\n"
      "  File \"/a.py\", line x in f\n  ...\nCurrent thread's C stack trace (most recent call "
      "first):\n  Binary file \"/lib/libc.so\", at abort+0x1 [0x2]\n");
  ASSERT_EQ(threads.size(), 1);
  EXPECT_EQ(threads[0].name, "loader");
  ASSERT_EQ(threads[0].frames.size(), 1);
  EXPECT_EQ(threads[0].frames[0].line(), 0);
}

TEST(PythonStacksTest, BoundsThreadsAndFramesAndKeepsTheMainThread) {
  std::string text;
  for (size_t i = 0; i < kMaxThreads + 10; ++i) {
    absl::StrAppend(&text, "Thread 0x01 (most recent call first):\n");
    for (size_t j = 0; j < kMaxFrames + 10; ++j) {
      absl::StrAppend(&text, "  File \"", std::string(j % 400, 'x'), "\", line 1 in f", i, "\n");
    }
  }
  const auto threads = ParseFaultHandler(text);
  ASSERT_EQ(threads.size(), kMaxThreads);
  EXPECT_EQ(threads.back().frames.size(), kMaxFrames);
  EXPECT_EQ(threads.back().frames[0].function(), absl::StrCat("f", kMaxThreads + 9));
  for (const auto& frame : threads.back().frames)
    EXPECT_LE(frame.file().size(), kMaxFrameNameBytes);
}

TEST(PythonStacksTest, ReadsPySpyWithTheMainThreadLast) {
  const auto threads = ParsePySpy(
      "Process 41: python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 41 (idle): \"MainThread\"\n    wait (threading.py:320)\n    <module> (train.py:3)\n"
      "Thread 42 (active): \"loader\"\n    fetch (a (b).py:7)\n");
  ASSERT_EQ(threads.size(), 2);
  EXPECT_EQ(threads[0].name, "loader");
  EXPECT_EQ(threads[0].frames[0].line(), 7);
  EXPECT_EQ(threads[1].name, "MainThread");
  ASSERT_EQ(threads[1].frames.size(), 2);
  EXPECT_EQ(threads[1].frames[0].function(), "wait");
  EXPECT_EQ(threads[1].frames[0].file(), "threading.py");
  EXPECT_EQ(threads[1].frames[0].line(), 320);
}

TEST(KernelStacksTest, ReadsTheFunctionsOfAStack) {
  const auto frames = ParseKernelStack(
      "[<0>] futex_wait_queue+0x5f/0x90\n[<0>] do_futex+0x105/0x260\nnonsense\n[<0>] "
      "entry_SYSCALL_64_after_hwframe+0x6e/0xd8\n");
  ASSERT_EQ(frames.size(), 3);
  EXPECT_EQ(frames[0].function(), "futex_wait_queue");
  EXPECT_EQ(frames[2].function(), "entry_SYSCALL_64_after_hwframe");
}

TEST(KernelStacksTest, ShowsTheThreadsOfThisProcessTheMainOneFirst) {
  std::thread other([] { usleep(200'000); });
  const auto threads = ReadKernelThreads("/proc", static_cast<uint32_t>(getpid()));
  other.join();
  ASSERT_TRUE(threads.ok()) << threads.status();
  ASSERT_GE(threads->size(), 2);
  EXPECT_EQ(threads->front().id, getpid());
  EXPECT_FALSE(threads->front().state.empty());
  EXPECT_EQ(ReadKernelThreads("/proc", 0).status().code(), absl::StatusCode::kNotFound);
}

TEST(KernelStacksTest, FindsOutWhetherASignalIsCaught) {
  const std::string status =
      "Name:\tpython\nSigIgn:\t0000000000000200\nSigCgt:\t0000010000000002\n";
  EXPECT_TRUE(CatchesSignal(status, 2));
  EXPECT_TRUE(CatchesSignal(status, 41));
  EXPECT_FALSE(CatchesSignal(status, 10));
  for (const int signal : {-1, 0, 65, 1000}) EXPECT_FALSE(CatchesSignal(status, signal));
  EXPECT_FALSE(CatchesSignal("", 2));
}

// This process plays the trainer: its handler writes a dump.
class StacksFileTest : public testing::Test {
 protected:
  StacksFileTest() {
    directory_ = testing::TempDir() + "/stacks-" + std::to_string(getpid());
    std::filesystem::create_directories(directory_);
    ring_ = directory_ + "/a.ring";
    std::ofstream(ring_) << "ring";
  }
  ~StacksFileTest() override {
    signal(SIGUSR2, SIG_DFL);
    std::filesystem::remove_all(directory_);
  }
  void Write(const std::string& text) { std::ofstream(ring_ + ".stacks") << text; }

  std::string directory_;
  std::string ring_;
};

int g_dump_fd = -1;

void WriteDump(int) {
  if (write(g_dump_fd, kDump, sizeof(kDump) - 1) < 0) abort();
}

TEST_F(StacksFileTest, TakesWhatTheHandlerWritesAndCutsTheFileBack) {
  Write(absl::StrCat("tacho-stacks 1 ", SIGUSR2, "\n"));
  g_dump_fd = open((ring_ + ".stacks").c_str(), O_WRONLY | O_APPEND);
  signal(SIGUSR2, WriteDump);
  const auto before = std::filesystem::file_size(ring_ + ".stacks");
  const TrainerProcess self(static_cast<uint32_t>(getpid()),
                            client::ProcessStartTicks("/proc/self/stat"));
  for (int round = 0; round < 2; ++round) {
    auto file = StacksFile::Open(ring_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Request(self, static_cast<uint32_t>(getpid())).ok());
    const auto text = file->Take(MonotonicNow() + absl::Seconds(5));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, kDump);
    EXPECT_EQ(std::filesystem::file_size(ring_ + ".stacks"), before);
  }
  close(g_dump_fd);
}

// The signal would end this test.
TEST_F(StacksFileTest, SendsNoSignalThatThereIsNoHandlerFor) {
  Write(absl::StrCat("tacho-stacks 1 ", SIGUSR2, "\n"));
  const TrainerProcess self(static_cast<uint32_t>(getpid()),
                            client::ProcessStartTicks("/proc/self/stat"));
  auto file = StacksFile::Open(ring_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->Request(self, static_cast<uint32_t>(getpid())).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(StacksFileTest, RefusesWhatIsNotATrainersFile) {
  EXPECT_EQ(StacksFile::Open(ring_).status().code(), absl::StatusCode::kNotFound);
  for (const char* const text :
       {"", "tacho-stacks 1 41", "tacho-stacks 2 41\n", "tacho-stacks 1 x\n", "root:x:0:0::\n"}) {
    Write(text);
    EXPECT_EQ(StacksFile::Open(ring_).status().code(), absl::StatusCode::kFailedPrecondition)
        << text;
  }
  Write("tacho-stacks 1 41\n");
  EXPECT_TRUE(StacksFile::Open(ring_).ok());
  // A second name of somebody's file.
  std::filesystem::create_hard_link(ring_ + ".stacks", directory_ + "/other");
  EXPECT_EQ(StacksFile::Open(ring_).status().code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::remove(ring_ + ".stacks");
  std::filesystem::create_symlink(directory_ + "/other", ring_ + ".stacks");
  EXPECT_FALSE(StacksFile::Open(ring_).ok());
}

TEST_F(StacksFileTest, RefusesAFileThatHasGrownTooLarge) {
  Write("tacho-stacks 1 41\n");
  std::filesystem::resize_file(ring_ + ".stacks", kMaxStacksFile);
  EXPECT_TRUE(StacksFile::Open(ring_).ok());
  std::filesystem::resize_file(ring_ + ".stacks", kMaxStacksFile + 1);
  EXPECT_EQ(StacksFile::Open(ring_).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tacho::agent
