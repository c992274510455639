// Recording must never allocate or enter the kernel.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <memory>
#include <new>

#include "tests/client/ring/ring_test_support.h"

static std::atomic<int64_t> allocations = 0;

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }

namespace tacho::client {
namespace {

// Two laps of the ring and more.
constexpr int64_t kRows = 2 * static_cast<int64_t>(kSmallRing) / 64;

// The real clocks, and a histogram that is recorded with every row.
RecorderOptions CostOptions(const TestDirectory& directory) {
  RecorderOptions options = SmallRing(directory);
  options.now_unix_ns = nullptr;
  options.histogram_interval_ns = 0;
  return options;
}

struct Trainer {
  explicit Trainer(const TestDirectory& directory)
      : recorder(Recorder::Open(CostOptions(directory))),
        loss(recorder.Gauge("loss", "", "")),
        examples(recorder.Counter("examples", "", "")),
        norms(recorder.Histogram("norms", "", "")) {
    recorder.CommitStep(0);
    OneStep(1);  // Declares what a step has.
  }

  void OneStep(int64_t n) {
    auto step = recorder.Step(n);
    step.Phase("data");
    step.Phase("compute");
    recorder.Set(loss, static_cast<double>(n));
    recorder.Add(examples, 1);
    recorder.Observe(norms, 0.5);
    step.Phase("comm");
    step.Collective("all-reduce", 4096).End();
  }

  void RecordRows() {
    for (int64_t n = 2; n < kRows; ++n) OneStep(n);
  }

  Recorder recorder;
  const Metric loss;
  const Metric examples;
  const HistogramMetric norms;
};

TEST(RingCostTest, RecordingAllocatesNothing) {
  TestDirectory directory;
  Trainer trainer(directory);
  const int64_t before = allocations;
  EXPECT_GT(before, 0) << "allocations are not counted here";
  trainer.RecordRows();
  EXPECT_EQ(allocations, before);
}

// From now on the kernel kills this process at any system call but exit. (Its strict mode would do
// as well, but takes the time stamp counter away, by which clocks are read without a system call.)
bool ForbidSystemCalls() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program = {.len = std::size(rules), .filter = rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr int kNoFilter = 77;

// The wait status of a child that does `work` under that rule, after `prepare`.
template <typename Prepare, typename Work>
int StatusWithoutSystemCalls(Prepare prepare, Work work, pid_t* child) {
  *child = fork();
  if (*child == 0) {
    auto prepared = prepare();
    if (!ForbidSystemCalls()) syscall(SYS_exit, kNoFilter);
    work(prepared.get());
    syscall(SYS_exit, 0);
  }
  int status = 0;
  waitpid(*child, &status, 0);
  return status;
}

TEST(RingCostTest, RecordingMakesNoSystemCall) {
  pid_t child = 0;
  const auto nothing = [] { return std::make_unique<int>(); };
  const int clock_status = StatusWithoutSystemCalls(
      nothing,
      [](int*) {
        timespec now = {};
        clock_gettime(CLOCK_REALTIME, &now);
      },
      &child);
  if (WIFEXITED(clock_status) && WEXITSTATUS(clock_status) == kNoFilter) {
    GTEST_SKIP() << "this kernel has no seccomp filters";
  }
  if (clock_status != 0) GTEST_SKIP() << "this machine's clock needs a system call";
  const int getpid_status = StatusWithoutSystemCalls(
      nothing, [](int*) { syscall(SYS_getpid); }, &child);
  ASSERT_TRUE(WIFSIGNALED(getpid_status)) << "system calls are not noticed here";

  TestDirectory directory;
  const int status =
      StatusWithoutSystemCalls([&directory] { return std::make_unique<Trainer>(directory); },
                               [](Trainer* trainer) { trainer->RecordRows(); }, &child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  const std::string path = directory.path() + "/job.3." + std::to_string(child) + ".ring";
  const Everything read = ReadAll(OpenReader(path).get());
  EXPECT_EQ(read.rows.size() + read.lost_rows, static_cast<uint64_t>(kRows));
}

}  // namespace
}  // namespace tacho::client
