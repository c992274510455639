// The ledger of jobs in a real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "server/goodput/job_goodput.h"
#include "server/query/lists/goodput_query.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::goodput {
namespace {

constexpr char kJob[] = "job";

int64_t At(double seconds) {
  return query::kTestBase + static_cast<int64_t>(seconds * static_cast<double>(query::kTestSecond));
}

class GoodputJobTest : public query::QueryStoreFixture {
 protected:
  void AppendEvent(const std::string& kind, double seconds, uint32_t attempt,
                   std::optional<uint32_t> task = 0,
                   std::map<std::string, std::string> fields = {}) {
    storage::Event event;
    event.source = {kJob, task, attempt, "host-0"};
    event.time_ns = At(seconds);
    event.kind = kind;
    event.fields = std::move(fields);
    absl::Notification durable;
    store_->AppendEvent({}, event, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      durable.Notify();
    });
    durable.WaitForNotification();
  }

  void AppendAttributes(uint32_t attempt, std::map<std::string, std::string> values) {
    absl::Notification durable;
    store_->AppendAttributes({}, {kJob, attempt, std::move(values)},
                             [&](const absl::Status& status) {
                               EXPECT_TRUE(status.ok()) << status;
                               durable.Notify();
                             });
    durable.WaitForNotification();
  }

  // Steps first..last, one a second from `from` on, of several tasks.
  void AppendSteps(uint32_t attempt, double from, int64_t first, int64_t last, uint32_t tasks = 2) {
    for (uint32_t task = 0; task < tasks; ++task) {
      const auto layout =
          Register(kJob, task, attempt, {"loss", "step_time_seconds", "data_wait_seconds"});
      std::vector<int64_t> times, steps;
      std::vector<double> values;
      for (int64_t step = first; step <= last; ++step) {
        times.push_back(At(from + static_cast<double>(step - first)));
        steps.push_back(step);
        values.insert(values.end(), {2.5, 1.0, 0.1});
      }
      Append(layout, times, steps, values);
    }
  }

  JobGoodput Goodput(double now_seconds) {
    auto goodput = GoodputOf(*store_, kJob, conditions::SignalNames(),
                             absl::FromUnixNanos(At(now_seconds)), query::QueryControl());
    EXPECT_TRUE(goodput.ok()) << goodput.status();
    return *std::move(goodput);
  }

  static double Seconds(const Ledger& ledger, GoodputBucket bucket) {
    return static_cast<double>(ledger[bucket]) / 1e9;
  }

  // Two attempts; the second goes back from step 99 to 50.
  void AppendTwoAttempts() {
    AppendEvent("attempt_started", 0, 0, std::nullopt);
    AppendEvent("compile_started", 5, 0);
    AppendEvent("compiled", 15, 0);
    AppendEvent("compile_started", 5, 0, 1);  // Comes from a task that does not count.
    AppendSteps(0, 20, 0, 99);
    AppendEvent("restore_started", 205, 1);
    AppendEvent("checkpoint_restored", 210, 1);
    AppendSteps(1, 211, 50, 149);
    AppendAttributes(1, {{"planned_steps", "1000"}, {"tokens_per_step", "100"}});
    AppendEvent("ended", 320, 1, std::nullopt, {{"status", "succeeded"}});
  }
};

TEST_F(GoodputJobTest, AHangWhoseAgentReportsIsStalledUntilItsTasksEnd) {
  AppendSteps(0, 0, 0, 99);
  const auto stalled = [&](const AgentReports& reports) {
    const auto goodput =
        GoodputOf(*store_, kJob, conditions::SignalNames(), absl::FromUnixNanos(At(1900)),
                  query::QueryControl(), /*max_spans=*/0, reports);
    EXPECT_TRUE(goodput.ok()) << goodput.status();
    return std::make_pair(Seconds(goodput->total, GoodputBucket::kStalled),
                          Seconds(goodput->total, GoodputBucket::kDown));
  };
  const auto silent = [](const std::string&) { return false; };
  const auto reports = [](const std::string& host) { return !host.empty(); };
  EXPECT_EQ(stalled(silent).first, 0);
  EXPECT_NEAR(stalled(silent).second, 1801, 1);
  EXPECT_NEAR(stalled(reports).first, 1800, 1);
  EXPECT_EQ(stalled(reports).second, 0);
  AppendEvent("exited", 105, 0, 0);
  EXPECT_NEAR(stalled(reports).first, 1800, 1) << "task 1 lives";
  AppendEvent("exited", 105, 0, 1);
  EXPECT_EQ(stalled(reports).first, 0);
}

TEST_F(GoodputJobTest, ALedgerOfTwoAttempts) {
  AppendTwoAttempts();
  const JobGoodput goodput = Goodput(5000);
  const Ledger& total = goodput.total;
  EXPECT_EQ(total.wall_ns(), 320 * query::kTestSecond);
  EXPECT_EQ(std::accumulate(total.ns.begin(), total.ns.end(), int64_t{0}), total.wall_ns());
  EXPECT_NEAR(Seconds(total, GoodputBucket::kCompiling), 10, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kInitializing), 10 + 1, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kRestoring), 5, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kDown), 205 - 119, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kDataWait), 19.8, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kWasted), 50 * 0.9, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kProductiveStep), (49 + 99) * 0.9, 1e-6);
  EXPECT_NEAR(Seconds(total, GoodputBucket::kOther), 320 - 310, 1e-6);
  ASSERT_EQ(goodput.attempts.size(), 2u);
  EXPECT_EQ(goodput.attempts[1].ledger.begin_ns, At(205));
  EXPECT_EQ(goodput.reference_task, 0u);
  EXPECT_EQ(goodput.step_metric, "step_time_seconds");
  EXPECT_EQ(goodput.steps.sampled, 100u);
  EXPECT_EQ(goodput.steps.tokens_per_second, 100);
  EXPECT_EQ(goodput.steps.remaining_seconds, 850) << "it counts from 0";
}

TEST_F(GoodputJobTest, TheBooksCloseWhenTheLastTaskHasEnded) {
  AppendSteps(0, 20, 0, 99, /*tasks=*/2);
  AppendEvent("ended", 100, 0, 0);
  EXPECT_EQ(Goodput(125).total.end_ns, At(119)) << "task 1 may go on";
  AppendEvent("exited", 130, 0, 1, {{"signal", "9"}});
  const JobGoodput goodput = Goodput(135);
  EXPECT_EQ(goodput.total.end_ns, At(130));
  EXPECT_EQ(Seconds(goodput.total, GoodputBucket::kDown), 0);
}

TEST_F(GoodputJobTest, TheBooksCloseWhenOneTaskHasEndedAndAllAreSilent) {
  AppendSteps(0, 20, 0, 99, /*tasks=*/2);
  AppendEvent("ended", 125, 0, 0);
  constexpr double kSilentAt = 119 + 300;
  EXPECT_LT(Goodput(kSilentAt).total.end_ns, At(125));
  const JobGoodput goodput = Goodput(kSilentAt + 1);
  EXPECT_EQ(goodput.total.end_ns, At(125));
  EXPECT_EQ(Seconds(goodput.total, GoodputBucket::kDown), 0);
}

TEST_F(GoodputJobTest, ATaskThatStartsAgainKeepsTheBooksOpen) {
  AppendSteps(0, 20, 0, 99, /*tasks=*/1);
  AppendEvent("ended", 125, 0, 0);
  EXPECT_EQ(Seconds(Goodput(1000).total, GoodputBucket::kDown), 0);
  AppendEvent("attempt_started", 130, 0, 0);
  EXPECT_EQ(Seconds(Goodput(1000).total, GoodputBucket::kDown), 1000 - 130);
  AppendEvent("ended", 140, 0, 0);
  EXPECT_EQ(Goodput(1000).total.end_ns, At(140));
}

TEST_F(GoodputJobTest, SealingChangesNothing) {
  AppendTwoAttempts();
  const JobGoodput live = Goodput(5000);
  EXPECT_TRUE(store_->Seal().ok());
  EXPECT_EQ(Goodput(5000).total.ns, live.total.ns);
}

TEST_F(GoodputJobTest, TheOrderOfArrivalDoesNotMatter) {
  AppendSteps(1, 211, 100, 149);
  AppendEvent("checkpoint_restored", 210, 1);
  EXPECT_TRUE(store_->Seal().ok());
  AppendSteps(0, 70, 50, 99);
  AppendEvent("restore_started", 205, 1);
  AppendSteps(0, 20, 0, 49);
  const JobGoodput late = Goodput(400);
  EXPECT_NEAR(Seconds(late.total, GoodputBucket::kRestoring), 5, 1e-6);
  EXPECT_NEAR(Seconds(late.total, GoodputBucket::kProductiveStep), (99 + 49) * 0.9, 1e-6);
  EXPECT_EQ(late.total.rewinds, 0u);
}

TEST_F(GoodputJobTest, AMovedTaskGoesOn) {
  AppendSteps(0, 0, 0, 49, 1);
  storage::LayoutDefinition definition;
  definition.source = {kJob, 0, 0, "another-host"};
  definition.has_steps = true;
  definition.series = {{{"step_time_seconds", storage::MetricType::kGauge, "s", ""}, {}}};
  const auto registered = store_->RegisterLayout(definition);
  ASSERT_TRUE(registered.ok());
  std::vector<int64_t> times, steps;
  for (int64_t step = 50; step < 100; ++step) {
    times.push_back(At(static_cast<double>(step)));
    steps.push_back(step);
  }
  Append(registered->layout, times, steps, std::vector<double>(50, 1.0));
  const JobGoodput goodput = Goodput(100);
  EXPECT_EQ(goodput.total.productive_steps, 99u);
  EXPECT_NEAR(Seconds(goodput.total, GoodputBucket::kProductiveStep), 99 - 49 * 0.1, 0.11);
}

TEST_F(GoodputJobTest, AnyMetricTellsOfStepsIfThereIsNoBetter) {
  const auto layout = Register(kJob, 3, 0, {"my_own_number"});
  Append(layout, {At(0), At(2), At(4)}, {0, 1, 2}, {7, 7, 7});
  const JobGoodput goodput = Goodput(4);
  EXPECT_EQ(goodput.step_metric, "my_own_number");
  EXPECT_EQ(goodput.reference_task, 3u);
  EXPECT_EQ(goodput.steps.median, 2);
}

TEST_F(GoodputJobTest, VerdictsOfTheCollectorAreNoSignOfLife) {
  AppendSteps(0, 0, 0, 49);
  AppendEvent("condition_raised", 400, 0, std::nullopt);
  EXPECT_EQ(Goodput(300).total.end_ns, At(49));
  EXPECT_NEAR(Seconds(Goodput(500).total, GoodputBucket::kDown), 451, 1e-6);
}

TEST_F(GoodputJobTest, TheAnswerHasEveryBucketAndSumsToTheWallTime) {
  AppendTwoAttempts();
  v1::GoodputRequest request;
  request.set_job(kJob);
  v1::GoodputResponse response;
  const absl::Time now = absl::FromUnixNanos(At(5000));
  ASSERT_TRUE(query::GetGoodput(*store_, request, conditions::SignalNames(), now,
                                query::QueryControl(), &response)
                  .ok());
  ASSERT_EQ(response.total().buckets_size(), v1::GoodputBucket_MAX);
  int64_t sum = 0;
  for (const auto& bucket : response.total().buckets()) sum += bucket.ns();
  EXPECT_EQ(sum, response.total().wall_ns());
  EXPECT_EQ(response.attempts_size(), 2);
  EXPECT_EQ(response.attempt(), 1u);
  EXPECT_NEAR(response.total().goodput_ratio(), 148 * 0.9 / 320, 1e-9);

  EXPECT_EQ(response.spans_size(), 0) << "none were asked for";

  request.set_max_spans(10'001);
  EXPECT_EQ(query::GetGoodput(*store_, request, conditions::SignalNames(), now,
                              query::QueryControl(), &response)
                .code(),
            absl::StatusCode::kInvalidArgument);
  request.set_max_spans(0);
  request.set_job("jop");
  const absl::Status status = query::GetGoodput(*store_, request, conditions::SignalNames(), now,
                                                query::QueryControl(), &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("did you mean \"job\""));
}

TEST_F(GoodputJobTest, SpansOfTheAnswerSumToItsBuckets) {
  AppendTwoAttempts();
  v1::GoodputRequest request;
  request.set_job(kJob);
  request.set_max_spans(10'000);
  v1::GoodputResponse response;
  const auto ask = [&] {
    response.Clear();
    EXPECT_TRUE(query::GetGoodput(*store_, request, conditions::SignalNames(),
                                  absl::FromUnixNanos(At(5000)), query::QueryControl(), &response)
                    .ok());
  };
  ask();
  std::map<v1::GoodputBucket, int64_t> sums;
  for (const auto& span : response.spans()) {
    sums[span.bucket()] += span.end_unix_ns() - span.begin_unix_ns();
  }
  for (const auto& bucket : response.total().buckets()) {
    EXPECT_EQ(sums[bucket.bucket()], bucket.ns()) << v1::GoodputBucket_Name(bucket.bucket());
  }
  EXPECT_EQ(response.spans_joined(), 0u);
  const auto& last = response.spans(response.spans_size() - 2);  // Then comes OTHER.
  EXPECT_EQ(last.bucket(), v1::GOODPUT_BUCKET_PRODUCTIVE_STEP);
  EXPECT_EQ(last.attempt(), 1u);
  EXPECT_EQ(last.last_step(), 149);
  EXPECT_FALSE(response.spans(0).has_first_step());
  // A wait in each step: they are joined first.
  request.set_max_spans(9);
  ask();
  std::vector<v1::GoodputBucket> buckets;
  for (const auto& span : response.spans()) buckets.push_back(span.bucket());
  EXPECT_THAT(buckets,
              testing::ElementsAre(v1::GOODPUT_BUCKET_INITIALIZING, v1::GOODPUT_BUCKET_COMPILING,
                                   v1::GOODPUT_BUCKET_INITIALIZING,
                                   v1::GOODPUT_BUCKET_PRODUCTIVE_STEP, v1::GOODPUT_BUCKET_WASTED,
                                   v1::GOODPUT_BUCKET_DOWN, v1::GOODPUT_BUCKET_RESTORING,
                                   v1::GOODPUT_BUCKET_PRODUCTIVE_STEP, v1::GOODPUT_BUCKET_OTHER));
  EXPECT_GT(response.spans_joined(), 190u);
}

// Random jobs: whatever was stored, every nanosecond is somewhere once.
class GoodputRandomTest : public query::QueryStoreFixture,
                          public testing::WithParamInterface<uint32_t> {
 protected:
  GoodputRandomTest() : query::QueryStoreFixture(GetParam()) {}
};

TEST_P(GoodputRandomTest, SumsToTheWallTime) {
  MakeJob(kJob, {.metrics = {"loss", "data_wait_seconds", "step_time_seconds"}});
  const auto goodput = GoodputOf(*store_, kJob, conditions::SignalNames(),
                                 absl::FromUnixNanos(At(Below(2000))), query::QueryControl(),
                                 /*max_spans=*/100'000);
  ASSERT_TRUE(goodput.ok()) << goodput.status();
  const Ledger& total = goodput->total;
  BucketAmounts of_spans = {};
  for (const BucketSpan& span : goodput->spans) {
    of_spans[static_cast<size_t>(span.bucket)] += span.ns();
  }
  EXPECT_EQ(of_spans, total.ns);
  EXPECT_EQ(goodput->spans_joined, 0);
  EXPECT_EQ(std::accumulate(total.ns.begin(), total.ns.end(), int64_t{0}), total.wall_ns());
}

INSTANTIATE_TEST_SUITE_P(Seeds, GoodputRandomTest, testing::Range(0u, 20u));

}  // namespace
}  // namespace tacho::server::goodput
