#include "server/ingest/definition_queue.h"

#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "proto/base/clock.h"

namespace tacho::server::ingest {
namespace {

using testing::ElementsAre;

TEST(DefinitionQueueTest, WhoHasDefinedLeastGoesFirst) {
  DefinitionQueue queue;
  absl::Notification begun;
  absl::Notification go_on;
  absl::Notification done;
  std::vector<int> order;
  queue.Add(9, [&] {
    begun.Notify();
    go_on.WaitForNotification();
  });
  begun.WaitForNotification();
  queue.Add(30, [&] {
    order.push_back(30);
    done.Notify();
  });
  for (const int debt : {20, 0, 10}) queue.Add(debt, [&, debt] { order.push_back(debt); });
  go_on.Notify();
  done.WaitForNotification();
  EXPECT_THAT(order, ElementsAre(0, 10, 20, 30));
}

TEST(DefinitionQueueTest, TheThreadSleepsAsLongAsItWorks) {
  DefinitionQueue queue;
  absl::Notification done;
  const absl::Duration piece = absl::Milliseconds(20);
  const absl::Time begun = MonotonicNow();
  queue.Add(0, [&] {
    for (int i = 0; i < 5; ++i) {
      absl::SleepFor(piece);
      queue.Pause();
    }
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_GE(MonotonicNow() - begun, 2 * 5 * piece);
}

TEST(DefinitionQueueTest, OtherThreadsDoNotSleep) {
  DefinitionQueue queue;
  for (int i = 0; i < 1000; ++i) queue.Pause();
}

TEST(DefinitionQueueTest, SmallLayoutsQueueOnlyIfAllAgentsTogetherDefineTooMuch) {
  DefinitionQueue queue;
  EXPECT_FALSE(queue.IsFor(DefinitionQueue::kSmallBytes));
  EXPECT_TRUE(queue.IsFor(DefinitionQueue::kSmallBytes + 1));
  queue.Defined(DefinitionQueue::kAtOnce.per_second);
  EXPECT_FALSE(queue.IsFor(100));
  queue.Defined(DefinitionQueue::kAtOnce.per_second * 600);
  EXPECT_TRUE(queue.IsFor(100));
}

TEST(DefinitionQueueTest, WhatIsQueuedIsLeftUndoneAtTheEnd) {
  absl::Notification begun;
  bool ran = false;
  {
    DefinitionQueue queue;
    queue.Add(0, [&] {
      begun.Notify();
      absl::SleepFor(absl::Milliseconds(50));
    });
    begun.WaitForNotification();
    queue.Add(1, [&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tacho::server::ingest
