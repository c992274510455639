// Open rows: what goes in comes out, compressed or not, being sealed or not.
#include "storage/head/head.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

double Stale() { return StaleMarker(); }

std::vector<uint64_t> BitsOf(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<uint64_t>(value));
  return bits;
}

class HeadTest : public testing::Test {
 protected:
  // Series ids from `first_series` on, ascending.
  LayoutPtr MakeLayout(LayoutId id, size_t columns, SeriesId first_series, bool has_steps = true,
                       JobId job = 1) {
    auto layout = std::make_shared<Layout>();
    layout->id = id;
    layout->attempt = 3;
    layout->has_steps = has_steps;
    for (size_t i = 0; i < columns; ++i) {
      series_.push_back({.id = first_series + i, .job_id = job, .source = &sources_[job]});
      layout->series.push_back(&series_.back());
    }
    return layout;
  }

  void Append(Head* head, const LayoutPtr& layout, const std::vector<int64_t>& times,
              const std::vector<int64_t>& steps, const std::vector<double>& values) {
    const std::string bytes = EncodeRowsEntry(*layout, {times, steps, values});
    head->Append(layout, *DecodeRowsEntry(bytes), ++position_, now_);
  }
  // One row of random bits, by the row's number.
  void AppendNumbered(Head* head, const LayoutPtr& layout, int64_t row) {
    std::vector<double> values;
    for (size_t i = 0; i < layout->series.size(); ++i) values.push_back(ValueOf(row, i));
    Append(head, layout, {row * 1000}, {row}, values);
  }
  static double ValueOf(int64_t row, size_t column) {
    if (column % 3 == 0) return static_cast<double>(row) * 0.25;
    const auto bits = (static_cast<uint64_t>(row) * 31 + column + 1) * 0x9e3779b97f4a7c15;
    return std::bit_cast<double>(bits);
  }

  static SampleBlock All(const Head& head, const Series& series, int64_t begin = INT64_MIN,
                         int64_t end = INT64_MAX) {
    SampleBlock all;
    for (const HeadColumn& piece : head.Capture(series)) {
      const SampleBlock samples = piece.Decode(begin, end);
      all.times.insert(all.times.end(), samples.times.begin(), samples.times.end());
      all.steps.insert(all.steps.end(), samples.steps.begin(), samples.steps.end());
      all.attempts.insert(all.attempts.end(), samples.attempts.begin(), samples.attempts.end());
      all.values.insert(all.values.end(), samples.values.begin(), samples.values.end());
    }
    return all;
  }
  static void ExpectNumbered(const SampleBlock& samples, size_t column, int64_t rows) {
    ASSERT_EQ(samples.size(), rows);
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_EQ(samples.times[row], row * 1000);
      ASSERT_EQ(samples.steps[row], row);
      ASSERT_EQ(std::bit_cast<uint64_t>(samples.values[row]),
                std::bit_cast<uint64_t>(ValueOf(row, column)));
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  uint64_t position_ = 0;
  std::array<SeriesSource, 3> sources_;  // One a job.
  std::deque<Series> series_;
};

TEST_F(HeadTest, EveryBitOfTimesStepsAndValuesSurvivesCompression) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 2, 10);
  const double payload = std::bit_cast<double>(uint64_t{0x7ff4000000000123});  // Signalling.
  Append(&head, layout, {50, INT64_MIN, 20}, {5, kNoStep, -7},
         {payload, 1, Stale(), 2, -0.0, INFINITY});
  for (int compressed = 0; compressed < 2; ++compressed) {
    const SampleBlock samples = All(head, *layout->series[0]);
    EXPECT_THAT(samples.times, ElementsAre(50, INT64_MIN, 20)) << "in the order of arrival";
    EXPECT_THAT(samples.steps, ElementsAre(5, kNoStep, -7));
    EXPECT_THAT(samples.attempts, ElementsAre(3, 3, 3));
    EXPECT_THAT(BitsOf(samples.values),
                ElementsAre(0x7ff4000000000123, kStaleMarkerBits, std::bit_cast<uint64_t>(-0.0)));
    EXPECT_THAT(All(head, *layout->series[1]).values, ElementsAre(1, 2, INFINITY));
    head.Compress(0, 0);
  }
  EXPECT_EQ(head.total().raw_bytes(), 0u);
}

TEST_F(HeadTest, ALayoutWithoutStepsHasNone) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 1, 10, false);
  Append(&head, layout, {1}, {}, {0.5});
  head.Compress(0, 0);
  Append(&head, layout, {2}, {}, {0.25});
  const SampleBlock samples = All(head, *layout->series[0]);
  EXPECT_THAT(samples.steps, ElementsAre(kNoStep, kNoStep));
  EXPECT_THAT(samples.values, ElementsAre(0.5, 0.25));
}

TEST_F(HeadTest, RowsCompressedInManySmallStepsAreAllThereInOrder) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 19, 10);
  constexpr int64_t kRows = 3000;
  for (int64_t row = 0; row < kRows; ++row) {
    AppendNumbered(&head, layout, row);
    if (row % 7 == 3) head.Compress(0, 0);
  }
  for (const size_t column : {size_t{0}, size_t{7}, size_t{8}, size_t{18}}) {
    ExpectNumbered(All(head, *layout->series[column]), column, kRows);
  }
  const auto columns = head.Capture(*layout->series[0]);
  ASSERT_THAT(columns, SizeIs(1));
  EXPECT_LT(columns[0].blocks.size(), 20u) << "small blocks are merged";
  const auto taken = head.TakeForSealing({.min_rows = 1}, SIZE_MAX);
  ASSERT_THAT(taken, SizeIs(1));
  const FrameRows rows = taken[0].taken.Decode(*layout);
  ASSERT_EQ(rows.size(), kRows);
  EXPECT_EQ(rows.times[kRows - 1], (kRows - 1) * 1000);
  EXPECT_EQ(rows.steps[5], 5);
  EXPECT_EQ(std::bit_cast<uint64_t>(rows.values[18 * kRows + 77]),
            std::bit_cast<uint64_t>(ValueOf(77, 18)))
      << "column by column";
}

TEST_F(HeadTest, ReadsAreLimitedByTime) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 1, 10);
  Append(&head, layout, {10, 30}, {1, 3}, {1, 3});
  head.Compress(0, 0);
  Append(&head, layout, {20, INT64_MAX}, {2, 4}, {2, 4});
  EXPECT_THAT(All(head, *layout->series[0], 20, 30).values, ElementsAre(2));
  EXPECT_THAT(All(head, *layout->series[0], 11, INT64_MAX).values, ElementsAre(3, 2, 4));
  EXPECT_THAT(All(head, *layout->series[0], 40, 50).values, IsEmpty());
}

TEST_F(HeadTest, ASeriesIsFoundInEveryLayoutOfItsSourceWhateverTheOrderOfIds) {
  Head head;
  const LayoutPtr ascending = MakeLayout(1, 4, 10);
  auto mixed = std::make_shared<Layout>(*MakeLayout(2, 2, 30));
  mixed->series = {ascending->series[3], mixed->series[0], ascending->series[1]};
  auto gaps = std::make_shared<Layout>(*MakeLayout(3, 2, 40));
  gaps->series = {ascending->series[0], ascending->series[1], gaps->series[0]};
  gaps->series.erase(gaps->series.begin());
  Append(&head, ascending, {1}, {1}, {10, 11, 12, 13});
  Append(&head, mixed, {2}, {2}, {23, 0, 21});
  Append(&head, gaps, {3}, {3}, {31, 34});
  EXPECT_THAT(All(head, *ascending->series[1]).values, ElementsAre(11, 21, 31));
  EXPECT_THAT(All(head, *ascending->series[3]).values, ElementsAre(13, 23));
  EXPECT_THAT(All(head, *ascending->series[2]).values, ElementsAre(12));
  EXPECT_THAT(All(head, *gaps->series[1]).values, ElementsAre(34));
  const auto columns = head.Capture(*ascending->series[1]);
  EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end(),
                             [](auto& a, auto& b) { return a.position < b.position; }));
}

TEST_F(HeadTest, ACaptureStaysAsItWasWhateverBecomesOfTheRows) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 3, 10);
  const Series& series = *layout->series[1];
  for (int64_t row = 0; row < 10; ++row) {
    AppendNumbered(&head, layout, row);
    if (row == 6) head.Compress(0, 0);
  }
  const auto before = head.Capture(series);
  for (int64_t row = 10; row < 20; ++row) AppendNumbered(&head, layout, row);
  head.Compress(0, 0);
  const auto compressed = head.Capture(series);
  auto taken = head.TakeForSealing({.min_rows = 1}, SIZE_MAX);
  ASSERT_THAT(taken, SizeIs(1));
  taken[0].frame->FinishSealing();
  head.RemoveJob(1);
  taken.clear();
  EXPECT_THAT(head.Capture(series), IsEmpty());
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_EQ(before[0].position, 10u);
  EXPECT_EQ(before[0].first_time_ns, 0);
  EXPECT_EQ(before[0].last_time_ns, 9000);
  ExpectNumbered(before[0].Decode(INT64_MIN, INT64_MAX), 1, 10);
  ASSERT_THAT(compressed, SizeIs(1));
  ExpectNumbered(compressed[0].Decode(INT64_MIN, INT64_MAX), 1, 20);
}

TEST_F(HeadTest, RowsBeingSealedStayReadableAndAreForgottenOrPutBack) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 2, 10);
  for (int64_t row = 0; row < 5; ++row) AppendNumbered(&head, layout, row);
  head.Compress(0, 0);
  auto taken = head.TakeForSealing({.min_rows = 5}, SIZE_MAX);
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].taken.position, 5u);
  AppendNumbered(&head, layout, 5);
  EXPECT_THAT(head.TakeForSealing({.min_rows = 1}, SIZE_MAX), IsEmpty()) << "one at a time";
  EXPECT_THAT(head.Capture(*layout->series[0]), SizeIs(2));
  EXPECT_EQ(head.SealedUpTo(), 1u);
  taken[0].frame->ReturnFromSealing();
  ExpectNumbered(All(head, *layout->series[0]), 0, 6);
  EXPECT_EQ(head.SealedUpTo(), 1u);
  EXPECT_EQ(head.total().rows(), 6u);

  taken = head.TakeForSealing({.opened_before = now_}, SIZE_MAX);
  ASSERT_THAT(taken, SizeIs(1)) << "what could not be sealed is due at once";
  EXPECT_EQ(taken[0].taken.rows, 6u);
  AppendNumbered(&head, layout, 6);
  taken[0].frame->FinishSealing();
  EXPECT_EQ(head.SealedUpTo(), 7u);
  EXPECT_EQ(head.total().rows(), 1u);
  EXPECT_THAT(All(head, *layout->series[0]).times, ElementsAre(6000));
}

TEST_F(HeadTest, RowsThatCameBeforeTheClockWasSetBackAreDue) {
  Head head;
  AppendNumbered(&head, MakeLayout(1, 1, 1), 0);
  const absl::Duration age = absl::Minutes(10);
  const auto due = [&](absl::Time now) {
    return head.TakeForSealing({.opened_before = now - age, .opened_after = now + age}, SIZE_MAX);
  };
  EXPECT_THAT(due(now_), IsEmpty());
  EXPECT_THAT(due(now_ - age), IsEmpty()) << "a small step does no harm";
  EXPECT_THAT(due(now_ - absl::Hours(1)), SizeIs(1)) << "nobody waits for the clock";
}

TEST_F(HeadTest, CompressionStopsAtEitherBudgetAndTakesTheLongestFirst) {
  Head head;
  std::vector<LayoutPtr> layouts;
  for (LayoutId id = 1; id <= 10; ++id) {
    layouts.push_back(MakeLayout(id, 20, 100 * id));
    for (LayoutId row = 0; row < 10 * id; ++row) {
      Append(&head, layouts.back(), {static_cast<int64_t>(row)}, {0},
             std::vector<double>(20, static_cast<double>(row)));
    }
  }
  const uint64_t all = head.total().bytes();
  EXPECT_EQ(head.total().raw_bytes(), all);
  EXPECT_GE(all, 550u * 22 * 8);
  head.Compress(all, 0);
  EXPECT_EQ(head.total().bytes(), all) << "within the budget";
  head.Compress(0, all);
  EXPECT_EQ(head.total().bytes(), all) << "within the budget";
  head.Compress(0, all / 2);
  EXPECT_LE(head.total().raw_bytes(), all / 2);
  EXPECT_GT(head.total().raw_bytes(), all / 4);
  EXPECT_LT(head.total().bytes(), all / 4 * 3);
  EXPECT_TRUE(head.Capture(*layouts[9]->series[0])[0].tail.times.empty());
  EXPECT_FALSE(head.Capture(*layouts[0]->series[0])[0].tail.times.empty());
}

TEST_F(HeadTest, SealingTakesWhatIsDueThenTheLargestInBoundedPortions) {
  Head head;
  for (LayoutId id = 1; id <= 8; ++id) {
    const LayoutPtr layout = MakeLayout(id, 10, 100 * id);
    for (LayoutId row = 0; row < id; ++row) AppendNumbered(&head, layout, row);
    now_ += absl::Seconds(1);
  }
  const auto layouts = [](const std::vector<Head::Sealing>& taken) {
    std::vector<LayoutId> ids;
    for (const auto& one : taken) {
      ids.push_back(one.frame->layout()->id);
      one.frame->ReturnFromSealing();
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  EXPECT_THAT(layouts(head.TakeForSealing({}, SIZE_MAX)), IsEmpty());
  EXPECT_THAT(layouts(head.TakeForSealing({.min_rows = 7}, SIZE_MAX)), ElementsAre(7, 8));
  EXPECT_THAT(layouts(head.TakeForSealing({.min_rows = 1}, 1)), SizeIs(1));
  EXPECT_THAT(layouts(head.TakeForSealing({.excess_bytes = 1}, SIZE_MAX)), ElementsAre(8));
  EXPECT_THAT(
      layouts(head.TakeForSealing({.excess_bytes = UINT64_MAX, .excess_min_rows = 6}, SIZE_MAX)),
      ElementsAre(6, 7, 8));
  EXPECT_THAT(layouts(head.TakeForSealing({.positions_before = 4}, SIZE_MAX)), ElementsAre(1, 2));
}

TEST_F(HeadTest, LayoutsThatBeganTogetherAreDueOneByOne) {
  Head head;
  for (LayoutId id = 1; id <= 1000; ++id) AppendNumbered(&head, MakeLayout(id, 1, id), 0);
  size_t sealed = 0;
  size_t most = 0;
  for (int second = 0; second <= 600; ++second) {
    const auto due =
        head.TakeForSealing({.opened_before = now_ + absl::Seconds(second) - absl::Minutes(10),
                             .spread = absl::Minutes(5)},
                            SIZE_MAX);
    for (const auto& one : due) one.frame->FinishSealing();
    sealed += due.size();
    most = std::max(most, due.size());
    if (second < 299) {
      EXPECT_EQ(sealed, 0u) << "no sooner than half the age";
    }
  }
  EXPECT_GE(sealed, 999u) << "no later than the age";
  EXPECT_LT(most, 20u);
}

TEST_F(HeadTest, WhatLeavesIsNotCountedAnyMore) {
  Head head;
  const LayoutPtr mine = MakeLayout(1, 2, 10, true, 1);
  const LayoutPtr other = MakeLayout(2, 2, 20, true, 2);
  AppendNumbered(&head, mine, 0);
  AppendNumbered(&head, other, 0);
  {
    const auto taken = head.TakeForSealing({.min_rows = 1}, SIZE_MAX);
    AppendNumbered(&head, mine, 1);
    head.RemoveJob(1);
    for (const auto& one : taken) one.frame->FinishSealing();
  }
  EXPECT_EQ(head.total().rows(), 0u);
  EXPECT_EQ(head.total().bytes(), 0u);
  int visits = 0;
  head.VisitLatestRows([&](const LatestRow& row) {
    ++visits;
    EXPECT_EQ(row.layout->id, 2u) << "what was sealed has been seen all the same";
  });
  EXPECT_EQ(visits, 1);
}

TEST_F(HeadTest, LatestValuesTellTheirOwnRowWhereColumnsAreSparse) {
  Head head;
  const LayoutPtr layout = MakeLayout(1, 3, 10);
  const auto expect = [&](std::vector<double> values, std::vector<int64_t> times) {
    head.VisitLatestRows([&](const LatestRow& row) {
      EXPECT_EQ(BitsOf({row.values.begin(), row.values.end()}), BitsOf(values));
      for (size_t i = 0; i < times.size(); ++i) EXPECT_EQ(row.Time(i), times[i]) << i;
    });
  };
  Append(&head, layout, {10}, {1}, {1, Stale(), Stale()});
  expect({1, Stale(), Stale()}, {10, INT64_MIN, INT64_MIN});
  Append(&head, layout, {20, 30}, {2, 3}, {2, 22, Stale(), 3, Stale(), Stale()});
  expect({3, 22, Stale()}, {30, 20, INT64_MIN});
  Append(&head, layout, {25}, {4}, {9, 9, 9});
  expect({3, 22, Stale()}, {30, 20, INT64_MIN});  // Older than the newest row.
  Append(&head, layout, {40}, {5}, {4, 44, 444});
  expect({4, 44, 444}, {40, 40, 40});
  for (int64_t i = 0; i < 1000; ++i) Append(&head, layout, {50 + i}, {6}, {5, Stale(), Stale()});
  expect({5, 44, 444}, {1049, 40, 40});
}

TEST_F(HeadTest, ASeriesThatEndsHasNoNewestValueUntilItHasANewerOne) {
  Head head;
  const LayoutPtr dense = MakeLayout(1, 2, 10);
  const LayoutPtr sparse = MakeLayout(2, 2, 20);
  const auto values = [&] {
    std::vector<double> all;
    head.VisitLatestRows(
        [&](const LatestRow& row) { all.insert(all.end(), row.values.begin(), row.values.end()); });
    return BitsOf(all);
  };
  const auto end = [&](const LayoutPtr& layout, size_t column, int64_t time_ns) {
    head.EndLatest({{SeriesPtr(layout, layout->series[column]), time_ns}});
  };
  Append(&head, dense, {10}, {1}, {1, 2});
  end(dense, 1, 9);
  EXPECT_EQ(values(), BitsOf({1, 2})) << "the value is newer than the end";
  end(dense, 1, 10);
  EXPECT_EQ(values(), BitsOf({1, Stale()}));
  Append(&head, dense, {11}, {2}, {3, Stale()});
  EXPECT_EQ(values(), BitsOf({3, Stale()}));
  Append(&head, dense, {12}, {3}, {Stale(), 4});
  EXPECT_EQ(values(), BitsOf({3, 4}));
  head.RemoveJob(1);
  Append(&head, sparse, {10, 11}, {1, 2}, {1, 2, 3, Stale()});
  end(sparse, 0, 10);
  end(sparse, 1, 10);
  EXPECT_EQ(values(), BitsOf({3, Stale()}));
}

// Meant for ThreadSanitizer as well.
TEST_F(HeadTest, AppendingCompressingSealingAndReadingGoOnAtOnce) {
  Head head;
  std::vector<LayoutPtr> layouts;
  for (LayoutId id = 1; id <= 4; ++id) layouts.push_back(MakeLayout(id, 9, 100 * id));
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> sealed_rows = 0;
  std::thread compressor([&] {
    while (!stop) head.Compress(0, 0);
  });
  std::thread sealer([&] {
    for (int round = 0; !stop; ++round) {
      for (const auto& one : head.TakeForSealing({.min_rows = 100}, 4000)) {
        const FrameRows rows = one.taken.Decode(*one.frame->layout());
        for (size_t i = 1; i < rows.size(); ++i) ASSERT_EQ(rows.steps[i], rows.steps[i - 1] + 1);
        if (round % 3 == 0) {
          one.frame->ReturnFromSealing();
        } else {
          sealed_rows += rows.size();
          one.frame->FinishSealing();
        }
      }
    }
  });
  std::thread reader([&] {
    while (!stop) {
      for (const LayoutPtr& layout : layouts) {
        const SampleBlock samples = All(head, *layout->series[4]);
        for (size_t i = 0; i < samples.size(); ++i) {
          ASSERT_EQ(samples.steps[i], samples.steps[0] + static_cast<int64_t>(i));
          ASSERT_EQ(std::bit_cast<uint64_t>(samples.values[i]),
                    std::bit_cast<uint64_t>(ValueOf(samples.steps[i], 4)));
        }
      }
      head.VisitLatestRows([](const LatestRow& row) { ASSERT_EQ(row.values.size(), 9u); });
      ASSERT_GE(head.SealedUpTo(), 1u);
    }
  });
  constexpr int64_t kRows = 5000;
  for (int64_t row = 0; row < kRows; ++row) {
    for (const LayoutPtr& layout : layouts) AppendNumbered(&head, layout, row);
  }
  stop = true;
  compressor.join();
  sealer.join();
  reader.join();
  EXPECT_EQ(head.total().rows() + sealed_rows, 4 * kRows);
}

}  // namespace
}  // namespace tacho::storage
