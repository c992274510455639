#include "agent/sources/chips/call_worker.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/synchronization/notification.h"

namespace tacho::agent {
namespace {

TEST(CallWorkerTest, MakesOneCallAtATime) {
  const auto release = std::make_shared<absl::Notification>();
  CallWorker worker;
  EXPECT_TRUE(worker.idle());
  EXPECT_TRUE(worker.Start([release] { release->WaitForNotification(); }));
  EXPECT_FALSE(worker.idle());
  EXPECT_FALSE(worker.Start([] { ADD_FAILURE(); }));
  EXPECT_FALSE(worker.WaitIdle(absl::ZeroDuration()));
  release->Notify();
  EXPECT_TRUE(worker.WaitIdle(absl::Seconds(60)));
  EXPECT_TRUE(worker.Start([] {}));
}

TEST(CallWorkerTest, CallThatDoesNotReturnOutlivesTheWorker) {
  const auto release = std::make_shared<absl::Notification>();
  const auto returned = std::make_shared<absl::Notification>();
  {
    CallWorker worker;
    worker.Start([release, returned] {
      release->WaitForNotification();
      returned->Notify();
    });
  }
  release->Notify();
  EXPECT_TRUE(returned->WaitForNotificationWithTimeout(absl::Seconds(60)));
}

TEST(CallWorkerTest, WhatACallOwnsIsGoneWhenItIsIdle) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  CallWorker worker;
  worker.Start([owned = std::move(owned)] {});
  EXPECT_TRUE(worker.WaitIdle(absl::Seconds(60)));
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace tacho::agent
