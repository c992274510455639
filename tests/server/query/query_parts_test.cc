#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/query/read/attempts.h"
#include "server/query/read/query_control.h"
#include "server/query/worker_pool.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;

TEST(QueryControl, StopsAtItsDeadlineAndSaysWhich) {
  absl::Time now = absl::UnixEpoch();
  QueryControl control(
      absl::Seconds(5), [&] { return now; }, nullptr);
  now += absl::Seconds(5) - absl::Nanoseconds(1);
  EXPECT_TRUE(control.Check().ok());
  now += absl::Nanoseconds(1);
  EXPECT_EQ(control.Check().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(control.Check().message()), HasSubstr("query.timeout, 5s"));
}

TEST(QueryControl, StopsWhenTheCollectorDrainsOrTheClientHasGone) {
  std::atomic<bool> draining = false;
  QueryControl control(absl::Seconds(5), absl::Now, &draining);
  EXPECT_TRUE(control.Check().ok());
  draining = true;
  EXPECT_EQ(control.Check().code(), absl::StatusCode::kUnavailable);
  control.Cancel();
  EXPECT_EQ(control.Check().code(), absl::StatusCode::kCancelled);
}

TEST(WorkerPool, RefusesWhatHasNoThreadAndTakesItAfterwards) {
  WorkerPool pool(2);
  absl::Notification release;
  std::atomic<int> ran = 0;
  const auto wait = [&] {
    release.WaitForNotification();
    ++ran;
  };
  EXPECT_EQ(pool.Run(wait), WorkerPool::Admission::kAccepted);
  EXPECT_EQ(pool.Run(wait), WorkerPool::Admission::kAccepted);
  EXPECT_EQ(pool.Run(wait), WorkerPool::Admission::kFull);
  release.Notify();
  while (pool.active() > 0) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < 100; ++i) {
    while (pool.Run(wait) != WorkerPool::Admission::kAccepted)
      absl::SleepFor(absl::Milliseconds(1));
  }
  pool.Close();
  EXPECT_EQ(ran, 102);
}

TEST(WorkerPool, SpareWorkKeepsNoOtherFromBeingTaken) {
  WorkerPool pool(4);
  absl::Notification release;
  const auto wait = [&release] { release.WaitForNotification(); };
  EXPECT_TRUE(pool.RunSpare(wait));
  EXPECT_TRUE(pool.RunSpare(wait));
  EXPECT_FALSE(pool.RunSpare(wait));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pool.Run(wait), WorkerPool::Admission::kAccepted);
  EXPECT_EQ(pool.Run(wait), WorkerPool::Admission::kFull);
  EXPECT_EQ(pool.active(), 6u);
  release.Notify();
  while (pool.active() > 0) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(pool.RunSpare(wait));
  pool.Close();
  EXPECT_FALSE(pool.RunSpare(wait));
}

TEST(WorkerPool, CloseFinishesWhatWasTakenAndRefusesMore) {
  WorkerPool pool(8);
  std::atomic<int> ran = 0;
  int taken = 0;
  for (int i = 0; i < 8; ++i) {
    taken += pool.Run([&] { ++ran; }) == WorkerPool::Admission::kAccepted;
  }
  pool.Close();
  EXPECT_EQ(ran, taken);
  EXPECT_EQ(pool.Run([] {}), WorkerPool::Admission::kClosed);
  pool.Close();
}

TEST(WorkerPool, WorkThatLeavesFreesItsPlaceAndIsStillAwaited) {
  WorkerPool pool(1);
  absl::Notification left, release;
  std::atomic<bool> ended = false;
  const auto answer = [&](const WorkerPool::Leave& leave) {
    leave();
    leave();
    left.Notify();
    release.WaitForNotification();
    ended = true;
  };
  EXPECT_EQ(pool.RunAnswer(answer), WorkerPool::Admission::kAccepted);
  left.WaitForNotification();
  EXPECT_EQ(pool.active(), 0u);
  EXPECT_EQ(pool.Run([] {}), WorkerPool::Admission::kAccepted);
  release.Notify();
  pool.Close();
  EXPECT_TRUE(ended);
  EXPECT_EQ(pool.active(), 0u);
}

TEST(WorkerPool, OfNoThreadsIsAlwaysFull) {
  WorkerPool pool(0);
  EXPECT_EQ(pool.Run([] {}), WorkerPool::Admission::kFull);
}

storage::Matcher AttemptMatcher(storage::Matcher::Op op, const std::string& value) {
  return *storage::Matcher::Create("attempt", op, value);
}

TEST(AttemptCondition, AllowsEverythingWithoutMatchers) {
  AttemptCondition condition;
  EXPECT_TRUE(condition.any());
  EXPECT_TRUE(condition.Allows(7));
  EXPECT_EQ(condition.only(), std::nullopt);
}

TEST(AttemptCondition, TwoDifferentEqualsAllowNothing) {
  AttemptCondition condition;
  ASSERT_TRUE(condition.Add(AttemptMatcher(storage::Matcher::Op::kEqual, "1")).ok());
  EXPECT_EQ(condition.only(), 1u);
  ASSERT_TRUE(condition.Add(AttemptMatcher(storage::Matcher::Op::kEqual, "2")).ok());
  EXPECT_FALSE(condition.Allows(1));
  EXPECT_FALSE(condition.Allows(2));
}

TEST(AttemptCondition, RefusesWhatIsNoDecimalNumber) {
  for (const char* value : {"", "-1", "1.0", "01", " 1", "4294967296", "x"}) {
    AttemptCondition condition;
    EXPECT_EQ(condition.Add(AttemptMatcher(storage::Matcher::Op::kNotEqual, value)).code(),
              absl::StatusCode::kInvalidArgument)
        << value;
  }
}

}  // namespace
}  // namespace tacho::server::query
