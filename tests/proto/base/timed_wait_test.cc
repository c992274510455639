#include "proto/base/timed_wait.h"

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"

namespace tacho {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(20);
constexpr absl::Duration kLong = absl::Minutes(1);

class TimedWaitTest : public testing::Test {
 protected:
  ~TimedWaitTest() override {
    if (other_.joinable()) other_.join();
  }
  // Makes it true, soon, on another thread.
  void SetLater() {
    other_ = std::thread([this] {
      absl::SleepFor(kShort);
      absl::MutexLock lock(&mutex_);
      set_ = true;
      changed_.Signal();
    });
  }

  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread other_;
  const absl::Time began_ = MonotonicNow();
};

TEST_F(TimedWaitTest, EndsWhenTheConditionIsTrue) {
  SetLater();
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(AwaitFor(&mutex_, absl::Condition(&set_), kLong));
  EXPECT_TRUE(AwaitUntil(&mutex_, absl::Condition(&set_), absl::InfinitePast()));
  EXPECT_LT(MonotonicNow() - began_, kLong);
}

TEST_F(TimedWaitTest, EndsAtItsTimeAndNotBefore) {
  absl::MutexLock lock(&mutex_);
  EXPECT_FALSE(AwaitFor(&mutex_, absl::Condition(&set_), kShort));
  EXPECT_GE(MonotonicNow() - began_, kShort);
  EXPECT_FALSE(AwaitUntil(&mutex_, absl::Condition(&set_), began_ + 2 * kShort));
  EXPECT_GE(MonotonicNow() - began_, 2 * kShort);
  EXPECT_LT(MonotonicNow() - began_, kLong);
}

TEST_F(TimedWaitTest, DoesNotWaitForATimeThatIsPast) {
  absl::MutexLock lock(&mutex_);
  EXPECT_FALSE(AwaitFor(&mutex_, absl::Condition(&set_), absl::ZeroDuration()));
  EXPECT_FALSE(AwaitFor(&mutex_, absl::Condition(&set_), -absl::InfiniteDuration()));
  EXPECT_LT(MonotonicNow() - began_, kLong);
}

TEST_F(TimedWaitTest, WithoutATimeItWaitsForTheCondition) {
  SetLater();
  absl::MutexLock lock(&mutex_);
  EXPECT_TRUE(AwaitFor(&mutex_, absl::Condition(&set_), absl::InfiniteDuration()));
}

TEST_F(TimedWaitTest, ASignalEndsTheWaitForOne) {
  SetLater();
  absl::MutexLock lock(&mutex_);
  while (!set_) WaitFor(&changed_, &mutex_, kLong);
  EXPECT_LT(MonotonicNow() - began_, kLong);
  WaitFor(&changed_, &mutex_, kShort);
  EXPECT_LT(MonotonicNow() - began_, kLong);
}

TEST_F(TimedWaitTest, SaysWhetherTheNotificationHasCome) {
  absl::Notification notification;
  EXPECT_FALSE(WaitFor(notification, kShort));
  EXPECT_GE(MonotonicNow() - began_, kShort);
  std::thread notifies([&] { notification.Notify(); });
  EXPECT_TRUE(WaitFor(notification, kLong));
  notifies.join();
}

TEST(ClockThatPeopleSet, ARoundIsNotPutOffUntilAClockThatWasSetBackHasCaughtUp) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const absl::Duration interval = absl::Seconds(10);
  EXPECT_FALSE(HasCome(now + interval, now, interval));
  EXPECT_TRUE(HasCome(now, now, interval));
  EXPECT_TRUE(HasCome(now + interval, now + absl::Hours(1), interval)) << "set ahead";
  EXPECT_TRUE(HasCome(now + interval, now - absl::Hours(1), interval)) << "set back";
}

}  // namespace
}  // namespace tacho
