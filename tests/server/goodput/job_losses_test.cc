// What jobs in a real store lost to slow hosts.
#include "server/goodput/job_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "server/goodput/goodput_families.h"
#include "server/goodput/job_goodput.h"
#include "server/query/lists/goodput_query.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::goodput {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr char kJob[] = "job";

class JobLossesTest : public query::QueryStoreFixture {
 protected:
  // What a step takes longer on a task's host: in its input, or in its compute time.
  struct Fault {
    double input = 0;
    double compute = 0;
  };
  using FaultOf = std::function<Fault(uint32_t task, int64_t step)>;

  // A barrier-synchronous job: each step takes as long as its slowest task.
  void AppendSteps(uint32_t attempt, uint32_t tasks, int64_t steps, const FaultOf& fault_of) {
    std::vector<std::vector<double>> values(tasks);
    std::vector<int64_t> times;
    std::vector<int64_t> numbers;
    std::normal_distribution<double> noise(0, 0.01);
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<double> input(tasks);
      std::vector<double> compute(tasks);
      double slowest = 0;
      for (uint32_t task = 0; task < tasks; ++task) {
        const Fault fault = fault_of(task, step);
        input[task] = 0.1 + fault.input;
        compute[task] = 0.8 * (1 + noise(random_)) + fault.compute;
        slowest = std::max(slowest, input[task] + compute[task]);
      }
      now_s_ += slowest + 0.1;
      times.push_back(query::kTestBase + static_cast<int64_t>(now_s_ * 1e9));
      numbers.push_back(step);
      for (uint32_t task = 0; task < tasks; ++task) {
        const double own = input[task] + compute[task];
        values[task].insert(values[task].end(), {slowest + 0.1, input[task], compute[task]});
        const double wait = (slowest - own) / static_cast<double>(waits_.size());
        values[task].insert(values[task].end(), waits_.size(), wait);
      }
    }
    for (uint32_t task = 0; task < tasks; ++task) {
      std::vector<std::string> metrics = {"step_time_seconds", "data_wait_seconds",
                                          "compute_seconds"};
      metrics.insert(metrics.end(), waits_.begin(), waits_.end());
      Append(Register(kJob, task, attempt, metrics), times, numbers, values[task]);
    }
  }

  JobGoodput Goodput() {
    auto goodput = GoodputOf(*store_, kJob, conditions::SignalNames(),
                             absl::FromUnixNanos(query::kTestBase) + absl::Seconds(now_s_),
                             query::QueryControl());
    EXPECT_TRUE(goodput.ok()) << goodput.status();
    return *std::move(goodput);
  }
  static double Of(const JobGoodput& goodput, const std::string& host, LossReason reason) {
    for (const auto& losing : goodput.losing_hosts) {
      if (losing.host == host) return losing.seconds[static_cast<size_t>(reason)];
    }
    return 0;
  }

  std::vector<std::string> waits_ = {"comm_wait_seconds"};  // Share the wait.
  std::mt19937 random_{1};
  uint32_t attempt_ = 0;
  double now_s_ = 0;
};

TEST_F(JobLossesTest, ASlowHostIsChargedInEveryAttemptAndTheBucketsStillSum) {
  const auto slow = [](uint32_t task, int64_t step) {
    return task == 5                 ? Fault{.input = 0.5}
           : task == 2 && step < 100 ? Fault{.compute = 1}
                                     : Fault{};
  };
  AppendSteps(0, 8, 500,
              [](uint32_t task, int64_t) { return task == 5 ? Fault{.input = 0.5} : Fault{}; });
  AppendSteps(1, 8, 300, slow);
  const JobGoodput goodput = Goodput();
  // Of the first 100 steps of the second attempt two hosts are slow.
  const double input = 700 * 0.5 + 100 * 0.25;
  const double compute = 100 * 0.75;
  EXPECT_NEAR(Of(goodput, "host-5", LossReason::kInput), input, input * 0.05);
  EXPECT_NEAR(Of(goodput, "host-2", LossReason::kCompute), compute, compute * 0.05);
  EXPECT_NEAR(goodput.lost_seconds, input + compute, (input + compute) * 0.05);
  EXPECT_THAT(goodput.losing_hosts, SizeIs(2));
  EXPECT_EQ(goodput.losing_hosts[0].host, "host-5") << "the worst first";
  EXPECT_EQ(goodput.loss_judged_steps, 800u);
  const Ledger& total = goodput.total;
  EXPECT_EQ(std::accumulate(total.ns.begin(), total.ns.end(), int64_t{0}), total.wall_ns());
  EXPECT_LT(goodput.lost_seconds * 1e9, static_cast<double>(total.wall_ns()));

  v1::GoodputResponse response;
  query::ToProto(goodput, /*totals_only=*/true, &response);
  ASSERT_EQ(response.losses().hosts_size(), 2);
  int64_t sum = 0;
  for (const v1::HostLoss& host : response.losses().hosts()) sum += host.lost_ns();
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(response.losses().lost_ns()), 10);
  EXPECT_EQ(response.losses().hosts(0).reasons(0).reason(), v1::LOSS_REASON_INPUT);
}

TEST_F(JobLossesTest, TheWaitIsTheSumOfCollectivesWhereItIsNotRecordedItself) {
  // What it does beside its input and compute time, and before it waits, is communication.
  const auto slow = [](uint32_t task, int64_t) {
    return task == 5 ? Fault{.input = 0.5} : Fault{};
  };
  waits_ = {"collective_dp_allreduce_seconds", "collective_pp_send_peer_1_seconds"};
  AppendSteps(0, 8, 300, slow);
  const JobGoodput of_collectives = Goodput();
  EXPECT_NEAR(Of(of_collectives, "host-5", LossReason::kInput), 150, 150 * 0.05);
  EXPECT_EQ(Of(of_collectives, "host-5", LossReason::kCommunication), 0);
  EXPECT_NEAR(of_collectives.lost_seconds, 150, 150 * 0.05);
}

TEST_F(JobLossesTest, AHealthyJobLosesNothingAndAJobWithoutOwnWorkHasNoTable) {
  AppendSteps(0, 4, 500, [](uint32_t, int64_t) { return Fault{}; });
  const JobGoodput goodput = Goodput();
  EXPECT_EQ(goodput.loss_judged_steps, 500u);
  EXPECT_THAT(goodput.losing_hosts, IsEmpty());
  EXPECT_EQ(goodput.lost_seconds, 0);
  const auto layout = Register("other", 0, 0, {"step_time_seconds"});
  Append(layout, {query::kTestBase, query::kTestBase + query::kTestSecond}, {0, 1}, {1, 1});
  const auto other =
      GoodputOf(*store_, "other", conditions::SignalNames(),
                absl::FromUnixNanos(query::kTestBase) + absl::Seconds(10), query::QueryControl());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->loss_judged_steps, 0u);
  v1::GoodputResponse response;
  query::ToProto(*other, /*totals_only=*/true, &response);
  EXPECT_FALSE(response.has_losses());
}

TEST_F(JobLossesTest, OfAJobThatIsTooLongEveryNthBlockStandsForN) {
  constexpr int64_t kSteps = 4 * 4096;
  AppendSteps(0, 3, kSteps,
              [](uint32_t task, int64_t) { return task == 1 ? Fault{.compute = 0.5} : Fault{}; });
  const query::QueryControl control;
  const auto judge = [&](uint64_t max_samples) {
    auto losses = JobLosses::Create(*store_, kJob, 0, conditions::SignalNames(), kSteps, control,
                                    max_samples);
    EXPECT_TRUE(losses.ok()) << losses.status();
    losses->BeginSpan(0);
    double waited = 0;
    int64_t next = 0;
    const auto sink = [&](const StepRow& row) {
      EXPECT_EQ(row.step, next++ / 2) << "rows come out in order, each once";
      if (std::isfinite(row.waiting_seconds)) waited += row.waiting_seconds;
    };
    for (int64_t step = 0; step < kSteps; ++step) {
      const StepRow row = {
          .time_ns = query::kTestBase + step * 1'500'000'000, .step = step, .step_seconds = 1.5};
      EXPECT_TRUE(losses->AddStep(row, sink).ok());
      EXPECT_TRUE(losses->AddStep(row, sink).ok()) << "the same step once more";
    }
    EXPECT_TRUE(losses->EndSpan(sink).ok());
    EXPECT_EQ(next, 2 * kSteps);
    EXPECT_NEAR(waited, kSteps * 0.5, kSteps * 0.5 * 0.05) << "also in blocks that are not read";
    return std::make_pair(losses->losses().judged_steps(), losses->lost_seconds());
  };
  const auto [all_steps, all_lost] = judge(JobLosses::kMaxSamples);
  EXPECT_EQ(all_steps, static_cast<uint64_t>(kSteps));
  EXPECT_NEAR(all_lost, kSteps * 0.5, kSteps * 0.5 * 0.05);
  const auto [some_steps, some_lost] = judge(kSteps * 12 - 1);
  EXPECT_EQ(some_steps, static_cast<uint64_t>(kSteps) / 2);
  EXPECT_NEAR(some_lost, all_lost, all_lost * 0.01);
}

TEST_F(JobLossesTest, TheReferenceTaskWaitsForOthersAndNotForItself) {
  const auto waited = [&](double own, double other) {
    const double before =
        static_cast<double>(Goodput().total[GoodputBucket::kWaitingForOthers]) / 1e9;
    AppendSteps(attempt_++, 8, 200, [&](uint32_t task, int64_t) {
      return task == 0 ? Fault{.compute = own} : task == 3 ? Fault{.input = other} : Fault{};
    });
    const JobGoodput goodput = Goodput();
    const Ledger& total = goodput.total;
    EXPECT_EQ(std::accumulate(total.ns.begin(), total.ns.end(), int64_t{0}), total.wall_ns());
    return static_cast<double>(total[GoodputBucket::kWaitingForOthers]) / 1e9 - before;
  };
  AppendSteps(attempt_++, 8, 200, [](uint32_t, int64_t) { return Fault{}; });
  EXPECT_EQ(Goodput().total[GoodputBucket::kWaitingForOthers], 0) << "a healthy job";
  // The first row of an attempt ends its start, which is no step.
  EXPECT_NEAR(waited(0, 0.5), 199 * 0.5, 3);
  EXPECT_NEAR(waited(0.5, 0), 0, 3) << "it is the slow one";
  EXPECT_NEAR(waited(0.3, 0.8), 199 * 0.5, 3) << "it is slow, and another one is slower";
  EXPECT_NEAR(waited(0.8, 0.3), 0, 3) << "it is the slower of two";
}

TEST_F(JobLossesTest, TheMetricsHaveTheWorstHostsOnly) {
  constexpr uint32_t kTasks = 40;
  AppendSteps(0, kTasks, 200, [](uint32_t task, int64_t step) {
    const bool its_turn = step % kTasks == task && task < 15;
    return its_turn ? Fault{.compute = 0.5 + 0.1 * task} : Fault{};
  });
  auto job = std::make_shared<BoardGoodput>();
  static_cast<JobGoodput&>(*job) = Goodput();
  EXPECT_THAT(job->losing_hosts, SizeIs(15));
  size_t lines = 0;
  double total = 0;
  for (const auto& family : GoodputFamilies({job}, {}, 100)) {
    if (family.name == "tacho_job_host_lost_seconds") {
      lines = family.metric.size();
      EXPECT_EQ(family.metric[0].label.at(1).value, "host-14");
      EXPECT_EQ(family.metric[0].label.at(2).value, "compute");
    }
    if (family.name == "tacho_job_lost_to_hosts_seconds") total = family.metric[0].gauge.value;
  }
  EXPECT_EQ(lines, 10u);
  EXPECT_DOUBLE_EQ(total, job->lost_seconds);
}

}  // namespace
}  // namespace tacho::server::goodput
