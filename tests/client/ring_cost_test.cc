// What recording must never do: allocate, or enter the kernel.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "ring_test_support.h"

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }

namespace tacho::client {
namespace {

// Two laps of the ring.
constexpr int64_t kRows = 2 * static_cast<int64_t>(kSmallRing) / 64;

void RecordRows(Recorder* recorder, Metric loss, Metric examples) {
  for (int64_t i = 0; i < kRows; ++i) {
    recorder->Set(loss, static_cast<double>(i));
    recorder->Add(examples, 1);
    recorder->CommitStep(i);
  }
}

TEST(RingCostTest, RecordingAllocatesNothing) {
  TestDirectory directory;
  Recorder recorder = Recorder::Open(SmallRing(directory));
  const Metric loss = recorder.Gauge("loss", "", "");
  const Metric examples = recorder.Counter("examples", "", "");
  const int64_t before = allocations;
  EXPECT_GT(before, 0) << "allocations are not counted here";
  RecordRows(&recorder, loss, examples);
  EXPECT_EQ(allocations, before);
}

// In strict mode the kernel kills a process at any system call but read, write and exit.
TEST(RingCostTest, RecordingMakesNoSystemCall) {
  TestDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    Recorder recorder = Recorder::Open(SmallRing(directory));
    const Metric loss = recorder.Gauge("loss", "", "");
    const Metric examples = recorder.Counter("examples", "", "");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) syscall(SYS_exit, 77);
    RecordRows(&recorder, loss, examples);
    syscall(SYS_exit, 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this kernel has no strict seccomp mode";
  }
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  const std::string path = directory.path() + "/job.3." + std::to_string(child) + ".ring";
  const Everything read = ReadAll(OpenReader(path).get());
  EXPECT_EQ(read.rows.size() + read.lost_rows, static_cast<uint64_t>(kRows));
}

}  // namespace
}  // namespace tacho::client
