// The figures of a comparison are those of the samples, at whatever resolution its rows are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "server/query/compare/compare_query.h"
#include "tests/server/memory_store.h"

namespace tacho::server::query {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kSecond = 1'000'000'000;
constexpr uint32_t kPoints[] = {1, 2, 3, 7, 50, 199, 200, 201, 1000, 10'000};

class QueryFiguresTest : public testing::Test {
 protected:
  QueryFiguresTest() : store_(64) {}

  storage::SeriesPtr Series(const std::string& job, uint32_t task, const std::string& host,
                            storage::Metric metric, storage::Labels labels = {}) {
    return store_.AddSeries(job, std::move(metric), task, host, std::move(labels));
  }
  // Falls like a loss; the last values are far from the average of the rows they are in.
  std::vector<TestSample> Loss(int count, uint32_t attempt = 0, int64_t begin_ns = 0) {
    std::vector<TestSample> samples;
    for (int i = 0; i < count; ++i) {
      samples.push_back({begin_ns + i * kSecond, i, attempt, 3.0 / (1 + i) + 0.01 * (i % 7)});
    }
    return samples;
  }
  v1::CompareMetric Compared(const std::vector<std::string>& jobs, v1::Alignment alignment,
                             uint32_t max_points) {
    v1::CompareRequest request;
    for (const std::string& job : jobs) request.add_subjects()->set_job(job);
    request.add_metrics("m");
    request.set_alignment(alignment);
    request.set_max_points(max_points);
    v1::CompareMetric metric;
    const absl::Status status = Compare(*store_.get(), request, {}, *security::Rights::Everything(),
                                        {}, {}, [&](const v1::CompareResponse& message) {
                                          if (message.has_metric()) metric = message.metric();
                                          return absl::OkStatus();
                                        });
    EXPECT_TRUE(status.ok()) << status;
    return metric;
  }
  v1::ComparedSummary Figures(const std::vector<std::string>& jobs, v1::Alignment alignment,
                              uint32_t max_points, int subject = 0) {
    return Compared(jobs, alignment, max_points).columns(subject).summary();
  }
  // The figures with all numbers of points, which must be one.
  v1::ComparedSummary TheFigures(const std::vector<std::string>& jobs, v1::Alignment alignment,
                                 int subject = 0) {
    const v1::ComparedSummary first = Figures(jobs, alignment, kPoints[0], subject);
    for (const uint32_t points : kPoints) {
      // Serialized, because NaN is not equal to itself.
      EXPECT_EQ(Figures(jobs, alignment, points, subject).SerializeAsString(),
                first.SerializeAsString())
          << points << " points";
    }
    return first;
  }

  MemoryStore store_;
};

constexpr v1::Alignment kAlignments[] = {v1::ALIGNMENT_STEP, v1::ALIGNMENT_ELAPSED};

TEST_F(QueryFiguresTest, AreThoseOfTheSamplesAtAnyNumberOfPoints) {
  const std::vector<TestSample> samples = Loss(1234);
  store_.AddSamples(Series("a", 0, "h", MetricNamed("m")), samples);
  std::vector<TestSample> other = Loss(1000);
  for (TestSample& sample : other) sample.value += 0.5;
  store_.AddSamples(Series("b", 0, "h", MetricNamed("m")), other);
  double sum = 0;
  for (const TestSample& sample : samples) sum += sample.value;
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a", "b"}, alignment);
    EXPECT_EQ(figures.count(), 1234u);
    EXPECT_EQ(figures.last(), samples.back().value);
    EXPECT_EQ(figures.first(), samples.front().value);
    EXPECT_NEAR(figures.avg(), sum / 1234, 1e-12);
    const bool by_step = alignment == v1::ALIGNMENT_STEP;
    EXPECT_EQ(figures.last_position(), by_step ? 1233 : 1233 * kSecond);
    EXPECT_EQ(figures.first_position(), 0);
    EXPECT_FALSE(figures.has_rate());
    const v1::ComparedSummary second = TheFigures({"a", "b"}, alignment, 1);
    EXPECT_NEAR(second.mean_difference(), 0.5, 1e-2);
    EXPECT_EQ(second.shared(), by_step ? 1000u : 163u) << "steps, or parts of the time, of b";
  }
}

TEST_F(QueryFiguresTest, LeaveOutWhatIsNotFiniteButNotWhereItIsTheLast) {
  std::vector<TestSample> samples = Loss(500);
  samples[3].value = kNan;
  samples[200].value = kInfinity;
  samples[499].value = -kInfinity;
  store_.AddSamples(Series("a", 0, "h", MetricNamed("m")), samples);
  double sum = 0;
  double max = 0;
  for (const TestSample& sample : samples) {
    if (!std::isfinite(sample.value)) continue;
    sum += sample.value;
    max = std::max(max, sample.value);
  }
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a"}, alignment);
    EXPECT_EQ(figures.count(), 500u);
    EXPECT_EQ(figures.non_finite(), 3u);
    EXPECT_EQ(figures.last(), -kInfinity);
    EXPECT_EQ(figures.max(), max);
    EXPECT_NEAR(figures.avg(), sum / 497, 1e-12);
  }
}

TEST_F(QueryFiguresTest, OfOneSampleAreThatSample) {
  store_.AddSamples(Series("a", 0, "h", MetricNamed("m")), {{7 * kSecond, 41, 0, 0.25}});
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a"}, alignment);
    for (const double value :
         {figures.first(), figures.last(), figures.min(), figures.max(), figures.avg()}) {
      EXPECT_EQ(value, 0.25);
    }
    EXPECT_EQ(figures.last_position(), alignment == v1::ALIGNMENT_STEP ? 41 : 0);
  }
}

TEST_F(QueryFiguresTest, EndWithTheLastAttemptWhereverItRan) {
  store_.AddSamples(Series("a", 0, "h1", MetricNamed("m")), Loss(600, 0));
  std::vector<TestSample> again = Loss(700, 1, 900 * kSecond);
  for (TestSample& sample : again) sample.step += 400;
  store_.AddSamples(Series("a", 0, "h2", MetricNamed("m")), again);
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a"}, alignment);
    EXPECT_EQ(figures.count(), 400u + 700u) << "steps 400 to 599 of attempt 0 are superseded";
    EXPECT_EQ(figures.last(), again.back().value);
    EXPECT_EQ(figures.first(), 3.0);
  }
}

TEST_F(QueryFiguresTest, OfCountersHaveTheirGrowthAcrossResets) {
  const auto counter = MetricNamed("m", storage::MetricType::kCounter);
  std::vector<TestSample> samples;
  for (int i = 0; i < 300; ++i) {
    samples.push_back({i * kSecond, i, 0, i < 100 ? 10.0 * i : 4.0 * (i - 100)});
  }
  store_.AddSamples(Series("a", 0, "h0", counter), samples);
  for (TestSample& sample : samples) sample.value *= 2;
  store_.AddSamples(Series("a", 1, "h1", counter), samples);
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a"}, alignment);
    // Task 0 grew by 990 and then, from 0, by 796; task 1 by twice that.
    EXPECT_DOUBLE_EQ(figures.increase(), 3 * (990 + 796));
    EXPECT_DOUBLE_EQ(figures.rate(), 3.0 * (990 + 796) / (2 * 299)) << "of a task on average";
    EXPECT_DOUBLE_EQ(figures.last(), 1.5 * 796);
  }
}

TEST_F(QueryFiguresTest, OfAHistogramCountItsObservationsOnce) {
  const auto histogram = MetricNamed("m", storage::MetricType::kHistogram);
  for (const std::string bound : {"0.5", "1", "+Inf"}) {
    std::vector<TestSample> samples;
    const double share = bound == "+Inf" ? 8 : bound == "1" ? 5 : 2;
    for (int i = 0; i < 11; ++i) samples.push_back({i * kSecond, i, 0, share * i});
    store_.AddSamples(Series("a", 0, "h", histogram, {{"le", bound}}), samples);
  }
  for (const v1::Alignment alignment : kAlignments) {
    const v1::ComparedSummary figures = TheFigures({"a"}, alignment);
    EXPECT_EQ(figures.count(), 11u);
    EXPECT_EQ(figures.last(), 80);
    EXPECT_EQ(figures.increase(), 80);
    EXPECT_EQ(figures.rate(), 8);
  }
}

}  // namespace
}  // namespace tacho::server::query
