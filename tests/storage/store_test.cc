// Rows in, history out, on the real store over an in-memory file system.
#include "storage/store.h"

#include <bit>
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"
#include "storage/codec/keys.h"
#include "storage/head/row_block.h"
#include "tests/storage/store_fixture.h"
#include "tests/support/faulty_env.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StoreTest : public StoreFixture {};

TEST_F(StoreTest, RowsAreReadBackFromTheHeadFromColumnsAndFromBoth) {
  const LayoutPtr layout = Register(Definition("job", {"loss", "lr"}));
  ASSERT_TRUE(Append(layout, {10, 20}, {1, 2}, {0.5, 1e-3, 0.25, 1e-4}).ok());
  const SeriesPtr loss = Find("job", "loss");
  EXPECT_THAT(ReadAll(loss).values, ElementsAre(0.5, 0.25));
  ASSERT_TRUE(store_->Seal().ok());
  EXPECT_EQ(store_->Stats().open_rows, 0u);
  EXPECT_THAT(ReadAll(loss).values, ElementsAre(0.5, 0.25));
  ASSERT_TRUE(Append(layout, {30}, {3}, {0.125, 1e-5}).ok());
  const SampleBlock all = ReadAll(loss);
  EXPECT_THAT(all.values, ElementsAre(0.5, 0.25, 0.125));
  EXPECT_THAT(all.times, ElementsAre(10, 20, 30));
  EXPECT_THAT(all.steps, ElementsAre(1, 2, 3));
}

TEST_F(StoreTest, EveryBitOfAValueSurvivesSealingAndReopening) {
  const double payload = std::bit_cast<double>(uint64_t{0x7ff4000000000123});  // Signalling.
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {1, 2, 3, 4}, {1, 2, 3, 4}, {payload, -0.0, INFINITY, 1e-310}).ok());
  Reopen();
  const SampleBlock all = ReadAll(Find("job", "loss"));
  ASSERT_THAT(all.values, SizeIs(4));
  EXPECT_EQ(std::bit_cast<uint64_t>(all.values[0]), 0x7ff4000000000123u);
  EXPECT_EQ(std::bit_cast<uint64_t>(all.values[1]), std::bit_cast<uint64_t>(-0.0));
  EXPECT_EQ(all.values[2], INFINITY);
  EXPECT_EQ(all.values[3], 1e-310);
}

TEST_F(StoreTest, AStaleMarkerIsNoSample) {
  const double stale = StaleMarker();
  const LayoutPtr layout = Register(Definition("job", {"loss", "eval"}));
  ASSERT_TRUE(Append(layout, {1, 2}, {1, 2}, {0.5, stale, 0.25, 7}).ok());
  EXPECT_THAT(ReadAll(Find("job", "eval")).times, ElementsAre(2));
  Reopen();
  EXPECT_THAT(ReadAll(Find("job", "eval")).times, ElementsAre(2));
  EXPECT_EQ(store_->Stats().series, 2u);
}

TEST_F(StoreTest, OutOfOrderAndRepeatedTimesMergeAcrossDaysAndFrames) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {5 * kDayNs, 10, kDayNs + 1}, {5, 1, 3}, {5, 1, 3}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(Append(layout, {kDayNs, 10}, {2, 1}, {2, 11}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(Append(layout, {20, 5 * kDayNs}, {1, 5}, {12, 55}).ok());
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(11, 12, 2, 3, 55));
  EXPECT_EQ(store_->Stats().partitions, 3u);
}

TEST_F(StoreTest, ReadsAreLimitedByTimeStepAndAttempt) {
  const LayoutPtr first = Register(Definition("job", {"loss"}, 0, 0));
  const LayoutPtr second = Register(Definition("job", {"loss"}, 0, 1));
  ASSERT_TRUE(Append(first, {10, 20, 30}, {1, 2, 3}, {1, 2, 3}).ok());
  ASSERT_TRUE(Append(second, {40, 50}, {2, 3}, {22, 33}).ok());
  const SeriesPtr loss = Find("job", "loss");
  EXPECT_THAT(ReadAll(loss).attempts, ElementsAre(0, 0, 0, 1, 1)) << "both timelines are kept";
  for (int sealed = 0; sealed < 2; ++sealed) {
    EXPECT_THAT(ReadAll(loss, {.begin_ns = 20, .end_ns = 50}).values, ElementsAre(2, 3, 22));
    EXPECT_THAT(ReadAll(loss, {.first_step = 3}).values, ElementsAre(3, 33));
    EXPECT_THAT(ReadAll(loss, {.last_step = 2, .attempt = 1}).values, ElementsAre(22));
    ASSERT_TRUE(store_->Seal().ok());
  }
}

TEST_F(StoreTest, AReaderKeepsItsViewWhileRowsAreAddedSealedAndDropped) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {1, kDayNs}, {1, 2}, {1, 2}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  const SeriesPtr loss = Find("job", "loss");
  const auto reader = store_->Read(loss, {});
  ASSERT_TRUE(Append(layout, {2}, {2}, {9}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  SampleBlock block;
  std::vector<double> seen;
  while (*NextBlock(reader, &block))
    seen.insert(seen.end(), block.values.begin(), block.values.end());
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST_F(StoreTest, ARepeatedSequenceIsStoredOnceAndAcknowledgedAgain) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  const Origin origin{"agent", 7, 1};
  ASSERT_TRUE(Append(layout, {1}, {1}, {1}, origin).ok());
  ASSERT_TRUE(Append(layout, {2}, {2}, {2}, origin).ok()) << "acknowledged, not stored";
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1));
  Reopen();
  const LayoutPtr again = Register(Definition("job", {"loss"}));
  EXPECT_EQ(again->id, layout->id);
  ASSERT_TRUE(Append(again, {3}, {3}, {3}, origin).ok());
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(1));
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 1u);
  EXPECT_EQ(store_->DurableSequences("agent", 8).watermark(), 0u) << "another spool";
  EXPECT_EQ(store_->Stats().batches_repeated, 1u);
}

TEST_F(StoreTest, AnAgentThatLeavesHolesEverywhereIsRefused) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  absl::Status status;
  uint64_t sequence = 1;
  for (; sequence < 10'000 && status.ok(); sequence += 2) {
    status = Append(layout, {static_cast<int64_t>(sequence)}, {0}, {1}, {"agent", 1, sequence});
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Append(layout, {2}, {0}, {1}, {"agent", 1, 2}).ok()) << "filling a hole helps";
  EXPECT_TRUE(Append(layout, {1}, {0}, {1}, {"another", 1, 1}).ok());
}

TEST_F(StoreTest, AGapCountsAsDurableAndIsRecorded) {
  const Origin origin{"agent", 7, 10};
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendGap(origin, {1, 9}, 90, "spool full", std::move(done));
              }).ok());
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 10u);
  const auto events = store_->Events("", INT64_MIN, INT64_MAX);
  ASSERT_TRUE(events.ok());
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().kind, "data_lost");
  EXPECT_EQ(events->front().source.host, "agent");
  EXPECT_EQ(events->front().fields.at("rows"), "90");
}

// The Hello of an agent does this if another collector has what is missing here.
TEST_F(StoreTest, AGapWithoutASequenceClosesTheHoleForGood) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {1}, {1}, {1}, {"agent", 7, 10}).ok());
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendGap({"agent", 7, 0}, {1, 9}, 0, "elsewhere", std::move(done));
              }).ok());
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 10u);
  Reopen();
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 10u);
}

TEST_F(StoreTest, AnAgentThatLosesHereAndThereWithoutEndIsRefused) {
  absl::Status status;
  for (uint64_t sequence = 1; sequence < 10'000 && status.ok(); ++sequence) {
    const uint64_t lost = 1'000'000 + 2 * sequence;
    status = Wait([&](AppendDone done) {
      store_->AppendGap({"agent", 1, sequence}, {lost, lost}, 0, "", std::move(done));
    });
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_LE(store_->DurableSequences("agent", 1).ahead().size(), 1024u);
}

TEST_F(StoreTest, AMessageOfWhichNothingIsStoredLeavesNoTraceButItsSequence) {
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendGap({"agent", 7, 1}, {}, 5, "refused", std::move(done));
              }).ok());
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 1u);
  EXPECT_THAT(*store_->Events("", INT64_MIN, INT64_MAX), IsEmpty());
}

TEST_F(StoreTest, AGapInThePlaceOfAMessageIsRecordedAndLeavesNoHole) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  for (uint64_t sequence = 1; sequence <= 3000; sequence += 2) {
    ASSERT_TRUE(
        Append(layout, {static_cast<int64_t>(sequence)}, {0}, {1}, {"agent", 7, sequence}).ok());
    const SequenceRange own{sequence + 1, sequence + 1};
    ASSERT_TRUE(Wait([&](AppendDone done) {
                  store_->AppendGap({"agent", 7, own.first}, own, 1, "denied", std::move(done));
                }).ok());
  }
  EXPECT_EQ(store_->DurableSequences("agent", 7).watermark(), 3000u);
  // An event a minute: a job that may not be written must not fill the store.
  const auto events = store_->Events("", INT64_MIN, INT64_MAX);
  ASSERT_TRUE(events.ok());
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().message, "denied");
  EXPECT_EQ(events->front().fields.at("messages"), "1500");
  EXPECT_EQ(events->front().fields.at("rows"), "1500");
  EXPECT_EQ(events->front().fields.at("first_sequence"), "2");
  EXPECT_EQ(events->front().fields.at("last_sequence"), "3000");
  now_ += absl::Minutes(1);
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendGap({"agent", 7, 3001}, {3001, 3001}, 2, "denied", std::move(done));
              }).ok());
  EXPECT_THAT(*store_->Events("", INT64_MIN, INT64_MAX), SizeIs(2));
}

TEST_F(StoreTest, OldEventsLeaveWithTheirDays) {
  options_.retention = absl::Hours(48);
  Reopen();
  const int64_t today = DayOf(absl::ToUnixNanos(now_)) * kDayNs;
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {today}, {1}, {1}).ok());
  for (const int64_t time : {today - 5 * kDayNs, today}) {
    Event event;
    event.source.job = "job";
    event.time_ns = time;
    ASSERT_TRUE(
        Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); }).ok());
  }
  ASSERT_TRUE(store_->EnforceRetention().ok());
  const auto events = store_->Events("job", INT64_MIN, INT64_MAX);
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().time_ns, today);
}

TEST_F(StoreTest, EventsAndAttributesComeBackAfterReopening) {
  Event event;
  event.source = {"job", 2, 1, "host-2"};
  event.time_ns = 123;
  event.step = -4;
  event.kind = "checkpoint_saved";
  event.fields = {{"path", "/ckpt"}};
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendEvent({"a", 1, 1}, event, std::move(done));
              }).ok());
  const auto amend = [&](uint64_t sequence, std::map<std::string, std::string> values) {
    return Wait([&](AppendDone done) {
      store_->AppendAttributes({"a", 1, sequence}, {"job", 1, std::move(values)}, std::move(done));
    });
  };
  ASSERT_TRUE(amend(2, {{"model", "mlp"}, {"batch", "32"}}).ok());
  ASSERT_TRUE(amend(3, {{"batch", "64"}, {"model", ""}}).ok());
  Reopen();
  EXPECT_THAT(*store_->Events("job", 0, INT64_MAX), ElementsAre(event));
  EXPECT_THAT(*store_->Events("job", 0, 123), IsEmpty());
  const auto job = store_->FindJob("job");
  ASSERT_TRUE(job);
  ASSERT_THAT(job->attempts, SizeIs(1));
  EXPECT_EQ(job->attempts[0].attributes, (std::map<std::string, std::string>{{"batch", "64"}}));
}

TEST_F(StoreTest, JobsTellTheirExtentTasksAndAttempts) {
  const LayoutPtr a = Register(Definition("job", {"loss", "lr"}, 0, 0));
  const LayoutPtr b = Register(Definition("job", {"loss"}, 1, 2));
  ASSERT_TRUE(Append(a, {10, 20}, {1, 2}, {1, 1, 2, 2}).ok());
  ASSERT_TRUE(Append(b, {15}, {9}, {3}).ok());
  for (int reopened = 0; reopened < 2; ++reopened) {
    const auto job = store_->FindJob("job");
    ASSERT_TRUE(job);
    EXPECT_EQ(job->summary.extent.first_time_ns, 10);
    EXPECT_EQ(job->summary.extent.last_time_ns, 20);
    EXPECT_EQ(job->summary.extent.last_step, 9);
    EXPECT_EQ(job->summary.tasks, 2u);
    EXPECT_EQ(job->summary.hosts, 2u);
    EXPECT_EQ(job->summary.series, 3u);
    EXPECT_THAT(job->attempts, SizeIs(2));
    ASSERT_THAT(job->tasks, SizeIs(2));
    EXPECT_EQ(job->tasks[0].series, 2u);
    EXPECT_EQ(job->tasks[1].attempt, 2u);
    EXPECT_THAT(job->metrics, SizeIs(2));
    EXPECT_THAT(store_->Jobs(), SizeIs(1));
    Reopen();
  }
  EXPECT_FALSE(store_->FindJob("nobody"));
}

TEST_F(StoreTest, LatestIsTheNewestTimeNotTheLastWrite) {
  const LayoutPtr layout = Register(Definition("job", {"loss", "eval"}));
  const double stale = StaleMarker();
  const int64_t t = 100 * kDayNs;
  ASSERT_TRUE(Append(layout, {t}, {5}, {5, 50}).ok());
  ASSERT_TRUE(Append(layout, {t - 10, t + kDayNs}, {4, 6}, {4, 40, 6, stale}).ok());
  for (int reopened = 0; reopened < 2; ++reopened) {
    const auto loss = store_->Latest(Find("job", "loss"));
    ASSERT_TRUE(loss.ok() && loss->has_value());
    EXPECT_EQ((*loss)->value, 6);
    const auto eval = store_->Latest(Find("job", "eval"));
    ASSERT_TRUE(eval.ok() && eval->has_value());
    EXPECT_EQ((*eval)->value, 50);
    EXPECT_EQ((*eval)->step, 5);
    Reopen();
  }
}

TEST_F(StoreTest, LatestRowsOfLayoutsAreVisitedWithTheTimeTheyCame) {
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(layout, {10, 30, 20}, {1, 3, 2}, {1, 3, 2}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  int visits = 0;
  store_->VisitLatestRows([&](const LatestRow& row) {
    ++visits;
    EXPECT_EQ(row.time_ns, 30);
    EXPECT_EQ(row.step, 3);
    EXPECT_THAT(row.values, ElementsAre(3));
    EXPECT_EQ(row.received, now_);
  });
  EXPECT_EQ(visits, 1);
}

// A metric that is set every hundredth step must not flicker in the aggregates.
TEST_F(StoreTest, ASeriesWithoutValueInTheNewestRowShowsItsLastOneWithItsOwnTimes) {
  const double stale = StaleMarker();
  const LayoutPtr layout = Register(Definition("job", {"loss", "accuracy", "never"}));
  const absl::Time begin = now_;
  ASSERT_TRUE(
      Append(layout, {10, 20, 30}, {1, 2, 3}, {1, 0.5, stale, 2, 0.6, stale, 3, stale, stale})
          .ok());
  now_ += absl::Seconds(5);
  ASSERT_TRUE(Append(layout, {40, 35}, {4, 3}, {4, stale, stale, 9, stale, stale}).ok());
  store_->VisitLatestRows([&](const LatestRow& row) {
    EXPECT_EQ(row.time_ns, 40);
    EXPECT_EQ(row.values[0], 4);
    EXPECT_EQ(row.values[1], 0.6);
    EXPECT_EQ(std::bit_cast<uint64_t>(row.values[2]), kStaleMarkerBits);
    EXPECT_EQ(row.received, now_);
    EXPECT_EQ(row.Time(0), 40);
    EXPECT_EQ(row.Received(0), now_);
    EXPECT_EQ(row.Time(1), 20);
    EXPECT_EQ(row.Received(1), begin);
    EXPECT_EQ(row.Time(2), INT64_MIN);
    EXPECT_EQ(row.Received(2), absl::InfinitePast());
  });
}

TEST_F(StoreTest, AFullQueueRefusesAtOnceAndStoresNothing) {
  options_.queue_bytes = 1;
  Reopen();
  const LayoutPtr layout = Register(Definition("job", {"loss"}));
  const std::vector<int64_t> times(1000, 1);
  const std::vector<double> values(1000, 1.0);
  int refused = 0;
  std::vector<std::future<absl::Status>> results;
  for (int i = 0; i < 200; ++i) {
    auto result = std::make_shared<std::promise<absl::Status>>();
    results.push_back(result->get_future());
    store_->AppendRows({"a", 1, static_cast<uint64_t>(i) + 1}, layout, {times, times, values},
                       [result](const absl::Status& status) { result->set_value(status); });
  }
  uint64_t stored = 0;
  for (auto& result : results) {
    const absl::Status status = result.get();
    if (status.ok()) {
      ++stored;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      ++refused;
    }
  }
  EXPECT_GT(stored, 0u);
  EXPECT_EQ(store_->Stats().batches_appended, stored);
}

TEST_F(StoreTest, RetentionDropsWholeDaysAndJobsThatEndedBeforeThem) {
  options_.retention = absl::Hours(48);
  Reopen();
  const int64_t today = DayOf(absl::ToUnixNanos(now_)) * kDayNs;
  const LayoutPtr old_job = Register(Definition("old", {"loss"}));
  const LayoutPtr job = Register(Definition("job", {"loss"}));
  ASSERT_TRUE(Append(old_job, {today - 5 * kDayNs}, {1}, {1}).ok());
  ASSERT_TRUE(Append(job, {today - 5 * kDayNs, today}, {1, 2}, {1, 2}).ok());
  ASSERT_TRUE(store_->Seal().ok());
  ASSERT_TRUE(store_->EnforceRetention().ok());
  EXPECT_FALSE(store_->FindJob("old"));
  EXPECT_THAT(ReadAll(Find("job", "loss")).values, ElementsAre(2));
  EXPECT_EQ(store_->Stats().partitions, 1u);
  EXPECT_EQ(Append(old_job, {today}, {2}, {2}).code(), absl::StatusCode::kFailedPrecondition)
      << "a layout that has left the index must be defined again";
  const LayoutPtr again = Register(Definition("old", {"loss"}));
  EXPECT_NE(again->id, old_job->id);
  ASSERT_TRUE(Append(again, {today}, {2}, {2}).ok());
  Reopen();
  EXPECT_THAT(ReadAll(Find("old", "loss")).values, ElementsAre(2));
}

TEST_F(StoreTest, LatestIsTheSameFromMemoryAndFromColumns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const double stale = StaleMarker();
  LayoutPtr layout = Register(Definition("job", {"loss", "eval"}));
  const auto expect = [&](const std::string& metric, double value, int64_t step) {
    const auto latest = store_->Latest(Find("job", metric));
    ASSERT_TRUE(latest.ok()) << latest.status();
    ASSERT_TRUE(latest->has_value()) << metric;
    EXPECT_EQ((*latest)->value, value) << metric;
    EXPECT_EQ((*latest)->step, step) << metric;
  };
  ASSERT_TRUE(Append(layout, {10 * kSecond, 20 * kSecond}, {1, 2}, {1, 100, 2, stale}).ok());
  expect("loss", 2, 2);
  expect("eval", 100, 1);
  ASSERT_TRUE(Append(layout, {15 * kSecond}, {7}, {7, 700}).ok()) << "late";
  expect("loss", 2, 2);
  expect("eval", 700, 7);
  Reopen();
  layout = Register(Definition("job", {"loss", "eval"}));
  expect("loss", 2, 2);
  expect("eval", 700, 7);
  ASSERT_TRUE(Append(layout, {12 * kSecond}, {8}, {8, 800}).ok()) << "older than what is stored";
  expect("loss", 2, 2);
  expect("eval", 700, 7);
  const LayoutPtr second = Register(Definition("job", {"loss"}, 0, 1));
  ASSERT_TRUE(Append(second, {20 * kSecond}, {2}, {22}).ok());
  expect("loss", 22, 2);
  ASSERT_TRUE(Append(layout, {30 * kSecond}, {9}, {stale, 900}).ok());
  expect("loss", 22, 2);
  expect("eval", 900, 9);
}

// A misfit would be read past its end, and what lies there stored.
TEST_F(StoreTest, RowsThatDoNotFitTheirLayoutEndTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const LayoutPtr layout = Register(Definition("j", {"loss", "lr"}));
  EXPECT_DEATH(Append(layout, {1}, {1}, {0.5}).IgnoreError(), "check failed: rows.values.size");
  EXPECT_DEATH(Append(layout, {1}, {}, {0.5, 0.1}).IgnoreError(), "check failed: rows.steps.size");
}

TEST(RawRowsTest, AnEntryOfAnotherWidthEndsTheProcess) {
  const std::vector<double> values = {1, 2};
  RowsEntry entry{.rows = 1, .columns = 2};
  const int64_t time = 7;
  entry.times = absl::string_view(reinterpret_cast<const char*>(&time), sizeof(time));
  entry.values = absl::string_view(reinterpret_cast<const char*>(values.data()), 16);
  RawRows fits(2, false);
  fits.Append(entry);
  EXPECT_EQ(fits.Value(0, 1), 2);
  RawRows wider(3, false);
  EXPECT_DEATH(wider.Append(entry), "check failed: entry.columns == columns_");
}

}  // namespace
}  // namespace tacho::storage
