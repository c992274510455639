// Rows and events wait for the collector within bounds; the oldest are dropped and counted.
#include "client/direct/direct_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr double kValues[] = {1, 2};

TEST(DirectQueueTest, RowsOfTheSameColumnsShareAnItem) {
  DirectQueue queue(1 << 20);
  queue.AddMetric({.name = "a"});
  queue.AddMetric({.name = "b"});
  queue.AddRow(10, 1, kValues);
  queue.AddRow(11, 2, kValues);
  queue.AddRow(12, std::nullopt, kValues);
  const DirectWork work = queue.Take(absl::ZeroDuration());
  EXPECT_THAT(work.metrics, SizeIs(2));
  ASSERT_TRUE(work.item.has_value());
  const auto& rows = std::get<DirectRows>(*work.item);
  EXPECT_THAT(rows.times_unix_ns, ElementsAre(10, 11));
  EXPECT_THAT(rows.steps, ElementsAre(1, 2));
  EXPECT_THAT(rows.values, ElementsAre(1, 2, 1, 2));
  EXPECT_FALSE(work.closed);
  EXPECT_FALSE(std::get<DirectRows>(*queue.Take(absl::ZeroDuration()).item).has_steps);
}

TEST(DirectQueueTest, TheOldestMakesRoomAndIsCounted) {
  DirectQueue queue(0);  // As small as it may be.
  constexpr int64_t kRows = 20'000;
  queue.Add(DirectEvent{.time_unix_ns = 1, .step = {}, .kind = "k", .message = "", .fields = {}});
  for (int64_t i = 0; i < kRows; ++i) queue.AddRow(i, i, kValues);
  queue.Close();
  uint64_t lost_events = 0;
  int64_t lost = 0;
  int64_t taken = 0;
  int64_t next = -1;
  for (bool closed = false; !closed;) {
    const DirectWork work = queue.Take(absl::ZeroDuration());
    lost += static_cast<int64_t>(work.lost_rows);
    lost_events += work.lost_events;
    if (work.item.has_value()) {
      for (const int64_t step : std::get<DirectRows>(*work.item).steps) {
        if (next >= 0) {
          ASSERT_EQ(step, next);
        }
        next = step + 1;
        ++taken;
      }
    }
    closed = work.closed;
  }
  EXPECT_EQ(lost_events, 1u);
  EXPECT_GT(lost, 0);
  EXPECT_EQ(lost + taken, kRows);
  EXPECT_EQ(next, kRows) << "the newest are there";
  EXPECT_LE(taken * 32, static_cast<int64_t>(DirectQueue::kMinBytes));
  EXPECT_GE(taken * 32, static_cast<int64_t>(DirectQueue::kMinBytes / 2));
}

TEST(DirectQueueTest, AttributesAreMergedAndTheirSumIsBounded) {
  DirectQueue queue(1 << 20);
  EXPECT_TRUE(queue.AddAttribute("model", "a"));
  EXPECT_TRUE(queue.AddAttribute("model", "b"));
  EXPECT_THAT(queue.Take(absl::ZeroDuration()).attributes,
              ElementsAre(testing::Pair("model", "b")));
  int taken = 0;
  while (queue.AddAttribute("key", std::string(4000, 'v'))) ++taken;
  EXPECT_GT(taken, 20);
  EXPECT_LT(taken, 40);
}

TEST(DirectQueueTest, NothingIsTakenOnceItIsClosed) {
  DirectQueue queue(1 << 20);
  queue.Close();
  queue.AddRow(1, 1, kValues);
  EXPECT_FALSE(queue.AddAttribute("a", "b"));
  const DirectWork work = queue.Take(absl::InfiniteDuration());
  EXPECT_TRUE(work.closed);
  EXPECT_FALSE(work.item.has_value());
}

}  // namespace
}  // namespace tacho::client
