#include "proto/base/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace tacho {
namespace {

int NiceOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(BackgroundThread, IsNamedAndGivesWayWithoutTheOthers) {
  const int before = NiceOfThisThread();
  int nice = 0;
  std::string name;
  std::thread([&] {
    BecomeBackgroundThread("background");
    nice = NiceOfThisThread();
    std::array<char, 16> text = {};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
  }).join();
  EXPECT_EQ(nice, kBackgroundNice);
  EXPECT_EQ(name, "background");
  EXPECT_EQ(NiceOfThisThread(), before);
}

TEST(RepeatingThread, CallsAgainAndAgainUntilItIsStopped) {
  std::atomic<int> calls = 0;
  std::atomic<int> nice = 0;
  RepeatingThread thread;
  thread.Start("repeating", RepeatingThread::Priority::kBackground, absl::Milliseconds(1), [&] {
    nice = NiceOfThisThread();
    ++calls;
  });
  while (calls < 3) std::this_thread::yield();
  thread.Stop();
  const int last = calls;
  EXPECT_EQ(nice, kBackgroundNice);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(calls, last);
  thread.Stop();
}

TEST(RepeatingThread, StopDoesNotWaitForThePause) {
  std::atomic<int> calls = 0;
  {
    RepeatingThread thread;
    thread.Start("repeating", RepeatingThread::Priority::kUsual, absl::Hours(1), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

TEST(RepeatingThreadDeathTest, ANameIsNotLongerThanTheKernelAllows) {
  RepeatingThread thread;
  EXPECT_DEATH(
      thread.Start("more than 15 bytes", RepeatingThread::Priority::kUsual, absl::Hours(1), [] {}),
      "check failed");
}

}  // namespace
}  // namespace tacho
