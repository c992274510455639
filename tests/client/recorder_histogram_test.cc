// Histograms: their buckets, when they are recorded, and what becomes of them in tacho.v1.
#include <cmath>
#include <limits>

#include "client/histogram_layout.h"
#include "client/live_histogram.h"
#include "tests/client/ring/ring_test_support.h"

namespace tacho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;
constexpr HistogramBuckets kThree = {.first = 1, .factor = 10, .count = 3};  // 1, 10, 100.

class RecorderHistogramTest : public testing::Test {
 protected:
  Recorder Open() { return Recorder::Open(SmallRing(directory_)); }

  static Everything Read(const std::string& path) { return ReadAll(OpenReader(path).get()); }

  TestDirectory directory_;
};

TEST_F(RecorderHistogramTest, AnObservationCountsInTheFirstBucketWhoseBoundItDoesNotExceed) {
  LiveHistogram histogram(*MakeBounds(kThree));
  for (const double value : {-5.0, 0.0, 1.0, 1.0001, 10.0, 99.0, 100.0, 101.0}) {
    histogram.Observe(value);
  }
  EXPECT_THAT(histogram.counts(), ElementsAre(3, 2, 2, 1));
  EXPECT_DOUBLE_EQ(histogram.sum(), 307.0001);
}

TEST_F(RecorderHistogramTest, NonFiniteObservationsAreCountedAndLeaveTheSumAlone) {
  LiveHistogram histogram(*MakeBounds(kThree));
  histogram.Observe(2);
  histogram.Observe(std::numeric_limits<double>::quiet_NaN());
  histogram.Observe(std::numeric_limits<double>::infinity());
  histogram.Observe(-std::numeric_limits<double>::infinity());
  EXPECT_THAT(histogram.counts(), ElementsAre(1, 1, 0, 2));
  EXPECT_EQ(histogram.sum(), 2);
}

TEST_F(RecorderHistogramTest, DefaultBoundsReachFromTenthsOfMillisecondsToMinutes) {
  const auto bounds = MakeBounds({});
  ASSERT_TRUE(bounds);
  EXPECT_THAT(*bounds, SizeIs(24));
  EXPECT_EQ(bounds->front(), 1e-4);
  EXPECT_NEAR(bounds->back(), 838.86, 0.01);
}

TEST_F(RecorderHistogramTest, ImpossibleBucketsAreRefusedAndCounted) {
  Recorder recorder = Open();
  const HistogramBuckets wrong[] = {{.first = 0},
                                    {.first = -1},
                                    {.factor = 1},
                                    {.count = 0},
                                    {.count = 65},
                                    {.first = NAN},
                                    {.factor = NAN},
                                    {.first = INFINITY},
                                    {.first = 1e300, .factor = 1e10},
                                    {.first = 1, .factor = 1.0000000000000002, .count = 64}};
  uint64_t refused = 0;
  for (const HistogramBuckets& buckets : wrong) {
    const HistogramMetric histogram = recorder.Histogram("h", "", "", buckets);
    if (recorder.refused() == refused) continue;  // The last one is odd but possible.
    recorder.Observe(histogram, 1);
    refused += 2;
    EXPECT_EQ(recorder.refused(), refused);
  }
  EXPECT_GE(refused, 2 * (std::size(wrong) - 1));
  EXPECT_TRUE(MakeBounds({.first = 1, .factor = 2, .count = 64}));
}

TEST_F(RecorderHistogramTest, ItIsRecordedWithTheFirstRowAndThenOnceASecondIfItChanged) {
  Recorder recorder = Open();
  const HistogramMetric norms = recorder.Histogram("grad_norms", "1", "Norms.", kThree);
  const Metric loss = recorder.Gauge("loss", "", "");
  const auto commit = [&](int64_t step, int64_t time) {
    recorder.Set(loss, 1);
    recorder.CommitStep(step, time);
  };
  recorder.Observe(norms, 5);
  commit(1, 10 * kSecond);
  recorder.Observe(norms, 50);
  commit(2, 11 * kSecond - 1);
  recorder.Observe(norms, 500);
  commit(3, 11 * kSecond);
  commit(4, 20 * kSecond);
  const auto reader = OpenReader(recorder.path());
  const Everything read = ReadAll(reader.get());
  EXPECT_THAT(reader->histograms(), ElementsAre(testing::FieldsAre("grad_norms", "1", "Norms.",
                                                                   ElementsAre(1, 10, 100))));
  ASSERT_THAT(read.states, SizeIs(2));
  EXPECT_EQ(read.states[0].time_unix_ns, 10 * kSecond);
  EXPECT_EQ(read.states[0].step, 1);
  EXPECT_THAT(read.states[0].counts, ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(read.states[0].sum, 5);
  EXPECT_EQ(read.states[1].step, 3);
  EXPECT_THAT(read.states[1].counts, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(read.states[1].sum, 555);
  EXPECT_THAT(read.rows, SizeIs(4));
  EXPECT_EQ(read.lost_rows + read.lost_events, 0u);
  EXPECT_EQ(reader->corruptions(), 0u);
}

TEST_F(RecorderHistogramTest, WhatIsLeftIsRecordedAtTheEnd) {
  std::string path;
  {
    Recorder recorder = Open();
    path = recorder.path();
    const HistogramMetric norms = recorder.Histogram("norms", "", "", kThree);
    recorder.Set(recorder.Gauge("loss", "", ""), 1);
    recorder.CommitStep(1);
    recorder.Observe(norms, 5);
  }
  const Everything read = Read(path);
  ASSERT_THAT(read.states, SizeIs(1));
  EXPECT_EQ(read.states[0].step, 1);
}

TEST_F(RecorderHistogramTest, AProgramWithHistogramsAloneCanRecordThem) {
  Recorder recorder = Open();
  recorder.Observe(recorder.Histogram("latency_seconds", "s", ""), 0.1);
  recorder.Commit();
  const Everything read = Read(recorder.path());
  EXPECT_THAT(read.rows, IsEmpty());
  ASSERT_THAT(read.states, SizeIs(1));
  EXPECT_EQ(read.states[0].step, std::nullopt);
  EXPECT_EQ(recorder.refused(), 0u);
}

TEST_F(RecorderHistogramTest, NamesStayApartFromThoseOfMetrics) {
  Recorder recorder = Open();
  recorder.Gauge("a", "", "");
  recorder.Gauge("b_sum", "", "");
  recorder.Histogram("c", "", "");
  recorder.Histogram("c", "", "");  // The same one.
  EXPECT_EQ(recorder.refused(), 0u);
  recorder.Histogram("a", "", "");
  recorder.Histogram("b", "", "");
  recorder.Gauge("c", "", "");
  recorder.Gauge("c_sum", "", "");
  recorder.Histogram("c", "", "", kThree);
  recorder.Histogram(std::string(253, 'h'), "", "");
  EXPECT_EQ(recorder.refused(), 6u);
}

TEST_F(RecorderHistogramTest, TheThirtyThirdHistogramIsRefused) {
  Recorder recorder = Open();
  for (int i = 0; i < 32; ++i) recorder.Histogram("h" + std::to_string(i), "", "");
  EXPECT_EQ(recorder.refused(), 0u);
  recorder.Histogram("one more", "", "");
  EXPECT_EQ(recorder.refused(), 1u);
}

// Laps of rows and states: what is overwritten is counted in rows alone, exactly.
TEST_F(RecorderHistogramTest, OverwrittenStatesAreNotCountedAsLost) {
  RecorderOptions options = SmallRing(directory_);
  options.histogram_interval_ns = 0;
  Recorder recorder = Recorder::Open(options);
  const HistogramMetric norms = recorder.Histogram("norms", "", "");
  const Metric loss = recorder.Gauge("loss", "", "");
  constexpr int64_t kRows = 10'000;
  for (int64_t i = 0; i < kRows; ++i) {
    recorder.Set(loss, static_cast<double>(i));
    recorder.Observe(norms, 1);
    recorder.CommitStep(i, i);
  }
  const Everything read = Read(recorder.path());
  EXPECT_GT(read.lost_rows, 0u);
  EXPECT_EQ(read.lost_events, 0u);
  EXPECT_EQ(read.lost_rows + read.rows.size(), static_cast<uint64_t>(kRows));
  uint64_t last = 0;
  for (const uint64_t count : read.states.back().counts) last += count;
  EXPECT_EQ(last, static_cast<uint64_t>(kRows));
}

TEST_F(RecorderHistogramTest, ReadingOnFromACursorNeitherSkipsNorRepeatsRows) {
  RecorderOptions options = SmallRing(directory_);
  options.histogram_interval_ns = 0;
  Recorder recorder = Recorder::Open(options);
  const HistogramMetric norms = recorder.Histogram("norms", "", "");
  const Metric loss = recorder.Gauge("loss", "", "");
  for (int64_t i = 0; i < 50; ++i) {
    recorder.Set(loss, 1);
    recorder.Observe(norms, 1);
    recorder.CommitStep(i, i);
  }
  std::vector<int64_t> steps;
  RingCursor cursor;
  for (bool at_end = false; !at_end;) {
    auto reader = OpenReader(recorder.path());  // A new one each time, as after a restart.
    auto batch = reader->Read(cursor, {.max_rows_per_piece = 3, .max_rows = 5});
    ASSERT_TRUE(batch.ok()) << batch.status();
    Everything read;
    Collect(*batch, &read);
    for (const Row& row : read.rows) steps.push_back(row.step);
    EXPECT_EQ(read.lost_rows + read.lost_events, 0u);
    cursor = batch->end;
    at_end = batch->at_end;
  }
  ASSERT_THAT(steps, SizeIs(50));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST(HistogramLayoutTest, BucketsAreCumulativeSeriesAndTheSumACounter) {
  v1::Layout layout;
  const double bounds[] = {1e-4, 2.5, 100};
  AddHistogramSeries("norms", "1", "Norms.", bounds, &layout);
  ASSERT_EQ(layout.series_size(), 5);
  EXPECT_EQ(layout.series(0).metric().type(), v1::METRIC_TYPE_HISTOGRAM);
  EXPECT_EQ(layout.series(0).labels(0).name(), "le");
  EXPECT_EQ(layout.series(0).labels(0).value(), "1e-04");
  EXPECT_EQ(layout.series(2).labels(0).value(), "100");
  EXPECT_EQ(layout.series(3).labels(0).value(), "+Inf");
  EXPECT_EQ(layout.series(4).metric().name(), "norms_sum");
  EXPECT_EQ(layout.series(4).metric().type(), v1::METRIC_TYPE_COUNTER);
  const uint64_t counts[] = {1, 0, 2, 3};
  EXPECT_THAT(HistogramValues(counts, 7.5), ElementsAre(1, 1, 3, 6, 7.5));
}

}  // namespace
}  // namespace tacho::client
