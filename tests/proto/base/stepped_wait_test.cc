// Which waits end in time although the wall clock is set back meanwhile. A program of its own,
// because stepped_clock.cc takes the place of the C library's clocks.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "tests/support/clock/stepped_clock.h"

namespace tacho {
namespace {

constexpr absl::Duration kWait = absl::Milliseconds(600);
constexpr absl::Duration kStepAfter = absl::Milliseconds(200);
constexpr absl::Duration kBack = absl::Minutes(2);
// Most that a wait of kWait may take; one that waits for the wall clock takes more than kBack.
constexpr absl::Duration kInTime = absl::Minutes(1);

class SteppedWaitTest : public testing::Test {
 protected:
  SteppedWaitTest() { ClockStep() = 0; }
  ~SteppedWaitTest() override { ClockStep() = 0; }

  // How long a wait takes during which the clock is set back.
  absl::Duration Took(const std::function<void()>& wait) {
    std::thread sets([] {
      std::this_thread::sleep_for(absl::ToChronoMilliseconds(kStepAfter));
      ClockStep() = absl::ToInt64Nanoseconds(-kBack);
    });
    const absl::Time wall = absl::Now();
    const absl::Time began = MonotonicNow();
    wait();
    const absl::Duration took = MonotonicNow() - began;
    sets.join();
    EXPECT_LT(absl::Now(), wall) << "the clock was not set";
    return took;
  }
  void ExpectInTime(const std::function<void()>& wait) {
    const absl::Duration took = Took(wait);
    EXPECT_GE(took, kWait);
    EXPECT_LT(took, kInTime);
  }

  absl::Mutex mutex_;
  bool never_ = false;
};

TEST_F(SteppedWaitTest, ForACondition) {
  ExpectInTime([&] {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(AwaitFor(&mutex_, absl::Condition(&never_), kWait));
  });
}

TEST_F(SteppedWaitTest, ForASignal) {
  absl::CondVar changed;
  ExpectInTime([&] {
    absl::MutexLock lock(&mutex_);
    WaitFor(&changed, &mutex_, kWait);
  });
}

TEST_F(SteppedWaitTest, ForANotification) {
  const absl::Notification notification;
  ExpectInTime([&] { EXPECT_FALSE(WaitFor(notification, kWait)); });
}

TEST_F(SteppedWaitTest, ThatOtherCodeMakesByAbseil) {
  ExpectInTime([&] {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(mutex_.AwaitWithTimeout(absl::Condition(&never_), kWait));
  });
}

TEST_F(SteppedWaitTest, OfTimersInGrpc) {
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  ExpectInTime([&] {
    grpc::Alarm alarm;
    alarm.Set(&queue, absl::ToChronoTime(absl::Now() + kWait), &queue);
    ASSERT_TRUE(queue.Next(&tag, &ok));
  });
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(SteppedWaitTest, OfCompletionQueues) {
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  ExpectInTime([&] {
    EXPECT_EQ(queue.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + kWait)),
              grpc::CompletionQueue::TIMEOUT);
  });
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(SteppedWaitTest, OfTheStandardLibraryAndOfSleepFor) {
  ExpectInTime([] { absl::SleepFor(kWait); });
  std::mutex mutex;
  std::condition_variable changed;
  ClockStep() = 0;
  ExpectInTime([&] {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, absl::ToChronoMilliseconds(kWait), [] { return false; });
  });
}

// Without this, the others would show nothing.
TEST_F(SteppedWaitTest, TheClockOfThisTestHoldsUpAWaitUntilATimeOfDay) {
  std::mutex mutex;
  std::condition_variable changed;
  constexpr absl::Duration kShortStep = absl::Seconds(2);
  std::thread sets([] {
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kStepAfter));
    ClockStep() = absl::ToInt64Nanoseconds(-kShortStep);
  });
  const absl::Time began = MonotonicNow();
  std::unique_lock lock(mutex);
  changed.wait_until(lock, absl::ToChronoTime(absl::Now() + kWait), [] { return false; });
  EXPECT_GE(MonotonicNow() - began, kWait + kShortStep - absl::Milliseconds(50));
  sets.join();
}

}  // namespace
}  // namespace tacho
