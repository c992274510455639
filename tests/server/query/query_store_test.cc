// Queries and aggregates over the real store, before and after its rows are sealed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/aggregate/aggregator.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/listings.h"
#include "server/query/range/range_query.h"
#include "storage/store.h"

namespace tacho::server::query {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int64_t kBase = 1'700'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int kSteps = 500;
constexpr uint32_t kTasks = 3;

// Every value different, with a NaN and an infinity among them.
double ValueOf(uint32_t task, int step) {
  if (task == 1 && step == 100) return std::bit_cast<double>(uint64_t{0x7ff8000000000123});
  if (task == 2 && step == 200) return -INFINITY;
  return std::sin(step * 0.01) + task + 1e-9 * step;
}

class QueryStoreTest : public testing::TestWithParam<bool> {
 protected:
  QueryStoreTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    storage::StoreOptions options;
    options.path = "/store";
    options.env = env_.get();
    options.background = false;
    options.seal_rows = 64;
    options.retention = absl::ZeroDuration();
    options.now = [] { return absl::FromUnixNanos(kBase + kSteps * kSecond); };
    auto store = storage::Store::Open(options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    for (uint32_t task = 0; task < kTasks; ++task) Append(task, 0, 0, kSteps);
    // Task 0 restarts from step 400 and repeats the last hundred, shifted by one second in time.
    Append(0, 1, 400, kSteps);
    if (GetParam()) {
      EXPECT_TRUE(store_->Seal().ok());
    }
    request_.mutable_selector()->set_job("train");
  }
  ~QueryStoreTest() override { EXPECT_TRUE(store_->Close().ok()); }

  void Append(uint32_t task, uint32_t attempt, int first, int end) {
    storage::LayoutDefinition layout;
    layout.source = {"train", task, attempt, "host-" + std::to_string(task)};
    layout.has_steps = true;
    layout.series.push_back({{"loss", storage::MetricType::kGauge, "1", "Loss."}, {}});
    auto registered = store_->RegisterLayout(layout);
    ASSERT_TRUE(registered.ok()) << registered.status();
    std::vector<int64_t> times, steps;
    std::vector<double> values;
    for (int step = first; step < end; ++step) {
      times.push_back(kBase + step * kSecond + attempt * 1000 * kSecond);
      steps.push_back(step);
      values.push_back(attempt == 0 ? ValueOf(task, step) : 1000.0 + step);
    }
    absl::Notification durable;
    store_->AppendRows({}, registered->layout, {times, steps, values},
                       [&](const absl::Status& status) {
                         EXPECT_TRUE(status.ok()) << status;
                         durable.Notify();
                       });
    durable.WaitForNotification();
  }

  std::vector<v1::RangeResponse> Run() {
    auto query = RangeQuery::Create(*store_, request_, {}, control_);
    EXPECT_TRUE(query.ok()) << query.status();
    std::vector<v1::RangeResponse> pieces;
    for (v1::RangeResponse piece;;) {
      auto more = (*query)->Next(&piece);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return pieces;
      pieces.push_back(piece);
    }
  }

  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<storage::Store> store_;
  QueryControl control_;
  v1::RangeRequest request_;
};

// Buckets that hold whole columns come from the columns' statistics; what they say must not differ
// from what the samples say. Task 7 has 40 columns of 10 rows.
TEST_P(QueryStoreTest, BucketsOfWholeColumnsEqualThoseOfTheirSamples) {
  for (int begin = 0; begin < 400; begin += 10) {
    Append(7, 0, begin, begin + 10);
    if (GetParam()) {
      ASSERT_TRUE(store_->Seal().ok());
    }
  }
  Append(7, 2, 0, 1);  // Its value is 1000, its time far behind the others'.
  auto* matcher = request_.mutable_selector()->add_matchers();
  matcher->set_label("task");
  matcher->set_op(v1::Matcher::OP_EQUAL);
  matcher->set_value("7");
  request_.mutable_time()->set_begin_unix_ns(kBase);
  request_.mutable_time()->set_end_unix_ns(kBase + 400 * kSecond);
  request_.set_max_points(3);  // 0 to 133, 133 to 266, …: two columns lie across a border.
  const auto pieces = Run();
  ASSERT_EQ(pieces.size(), 1u);
  const v1::Buckets& buckets = pieces[0].buckets();
  ASSERT_EQ(buckets.counts_size(), 3);
  const int64_t width = 399 * kSecond / 3 + 1;
  for (int bucket = 0, step = 0; bucket < 3; ++bucket) {
    const int first = step;
    double min = INFINITY, max = -INFINITY;
    long double sum = 0;
    for (; step < 400 && step * kSecond / width == bucket; ++step) {
      min = std::min(min, ValueOf(7, step));
      max = std::max(max, ValueOf(7, step));
      sum += ValueOf(7, step);
    }
    EXPECT_EQ(buckets.counts(bucket), static_cast<uint64_t>(step - first));
    EXPECT_EQ(buckets.min(bucket), min);
    EXPECT_EQ(buckets.max(bucket), max);
    EXPECT_NEAR(buckets.avg(bucket), static_cast<double>(sum / (step - first)), 1e-12);
    EXPECT_EQ(buckets.first(bucket), ValueOf(7, first));
    EXPECT_EQ(buckets.last(bucket), ValueOf(7, step - 1));
    EXPECT_EQ(buckets.first_steps(bucket), first);
    EXPECT_EQ(buckets.last_steps(bucket), step - 1);
    EXPECT_EQ(buckets.first_times_unix_ns(bucket), kBase + first * kSecond);
    EXPECT_EQ(buckets.last_times_unix_ns(bucket), kBase + (step - 1) * kSecond);
  }
}

TEST_P(QueryStoreTest, RawValuesAreThoseRecordedBitForBit) {
  auto* matcher = request_.mutable_selector()->add_matchers();
  matcher->set_label("attempt");
  matcher->set_op(v1::Matcher::OP_EQUAL);
  matcher->set_value("0");
  std::vector<std::vector<uint64_t>> bits(kTasks), expected(kTasks);
  for (const auto& piece : Run()) {
    for (const double value : piece.points().values()) {
      bits[piece.series_index()].push_back(std::bit_cast<uint64_t>(value));
    }
  }
  for (uint32_t task = 0; task < kTasks; ++task) {
    for (int step = 0; step < kSteps; ++step) {
      expected[task].push_back(std::bit_cast<uint64_t>(ValueOf(task, step)));
    }
    EXPECT_THAT(bits[task], ElementsAreArray(expected[task])) << "task " << task;
  }
}

TEST_P(QueryStoreTest, TimeAndStepRangesSelectTheirRows) {
  request_.mutable_steps()->set_begin(10);
  request_.mutable_steps()->set_end(12);
  request_.mutable_time()->set_begin_unix_ns(kBase + 11 * kSecond);
  request_.mutable_time()->set_end_unix_ns(kBase + 100 * kSecond);
  const auto pieces = Run();
  ASSERT_EQ(pieces.size(), kTasks);
  for (const auto& piece : pieces) EXPECT_THAT(piece.points().steps(), ElementsAre(11, 12));
}

TEST_P(QueryStoreTest, ReducedSeriesTellOfTheNan) {
  request_.set_max_points(10);
  const auto pieces = Run();
  ASSERT_EQ(pieces.size(), kTasks);
  EXPECT_THAT(pieces[1].buckets().counts(), testing::Each(50u));
  EXPECT_THAT(pieces[1].buckets().non_finite(), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(pieces[2].buckets().non_finite(), ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 0, 0));
}

TEST_P(QueryStoreTest, FoldedStepsTakeTheNewestAttempt) {
  request_.set_axis(v1::AXIS_STEP);
  request_.mutable_steps()->set_begin(399);
  request_.mutable_steps()->set_end(400);
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_MAX);
  const auto pieces = Run();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_THAT(pieces[0].points().values(), ElementsAre(ValueOf(2, 399), 1400.0));
  EXPECT_THAT(pieces[0].points().attempts(), ElementsAre(0, 1));
}

TEST_P(QueryStoreTest, JobsAndLatestAndAggregatesAgree) {
  v1::GetJobRequest get;
  get.set_job("train");
  v1::GetJobResponse job;
  ASSERT_TRUE(GetJob(*store_, get, absl::FromUnixNanos(kBase), control_, &job).ok());
  EXPECT_EQ(job.job().tasks(), kTasks);
  EXPECT_EQ(job.job().last_step(), kSteps - 1);
  EXPECT_EQ(job.attempts_size(), 2);

  v1::LatestRequest latest;
  latest.mutable_selector()->set_job("train");
  std::vector<double> values;
  ASSERT_TRUE(Latest(*store_, latest, 100, control_, [&](const v1::LatestResponse& piece) {
                for (const auto& sample : piece.samples()) values.push_back(sample.value());
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(values, ElementsAre(1499.0, ValueOf(1, 499), ValueOf(2, 499)));

  config::v1::Collector::Metrics config;
  config.set_built_in_rules(true);
  aggregate::Aggregator aggregator(store_.get(), *aggregate::MakeAggregateRules(config));
  std::string page;
  aggregator.Scrape(
      {absl::FromUnixNanos(kBase + kSteps * kSecond), absl::Minutes(5), 1000},
      [](absl::string_view) { return true; }, &page);
  const std::string labels = "{job=\"train\"";
  EXPECT_THAT(page, HasSubstr("tacho_job_tasks" + labels + "} " + std::to_string(kTasks) + "\n"));
  EXPECT_THAT(page, HasSubstr("tacho_job_attempt" + labels + "} 1\n"));
  EXPECT_THAT(page, HasSubstr(",stat=\"count\"} " + std::to_string(kTasks) + "\n"));
  EXPECT_THAT(page, HasSubstr(",stat=\"max\"} 1499\n"));
}

INSTANTIATE_TEST_SUITE_P(HeadAndColumns, QueryStoreTest, testing::Bool(),
                         [](const auto& value) { return value.param ? "Sealed" : "Open"; });

}  // namespace
}  // namespace tacho::server::query
