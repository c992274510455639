#include "server/goodput/host_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace tacho::server::goodput {
namespace {

using testing::IsEmpty;

constexpr int kSteps = 2000;

// A barrier-synchronous job with one task a host. Noise is normal, 3 % of compute, with a hiccup
// of up to 5 % now and then.
class Job {
 public:
  explicit Job(size_t hosts, uint32_t seed = 1) : hosts_(hosts), random_(seed) {}

  // Seconds that a step takes longer on a host, in a phase.
  struct Fault {
    size_t host = 0;
    LossReason reason = LossReason::kCompute;
    double seconds = 0;
  };
  // Returns how long the step took: as long as its slowest host.
  double Step(const std::vector<Fault>& faults, HostLosses* losses) {
    std::vector<RecordedStep> recorded(hosts_);
    std::vector<double> own(hosts_);
    for (size_t host = 0; host < hosts_; ++host) {
      RecordedStep& one = recorded[host];
      one.compute = 0.8 * (1 + 0.03 * noise_(random_));
      one.input = 0.05 * (1 + 0.1 * noise_(random_));
      double sending = 0.05;
      for (const Fault& fault : faults) {
        if (fault.host != host) continue;
        if (fault.reason == LossReason::kCompute) one.compute += fault.seconds;
        if (fault.reason == LossReason::kInput) one.input += fault.seconds;
        if (fault.reason == LossReason::kCheckpoint) one.checkpoint += fault.seconds;
        if (fault.reason == LossReason::kCommunication) sending += fault.seconds;
      }
      own[host] = one.compute + one.input + one.checkpoint + sending;
    }
    const double step = *std::max_element(own.begin(), own.end());
    std::vector<HostLosses::TaskStep> tasks;
    for (size_t host = 0; host < hosts_; ++host) {
      recorded[host].step = step;
      recorded[host].comm_wait = step - own[host];
      HostLosses::TaskStep task = {.host = host};
      EXPECT_TRUE(OwnWorkOf(recorded[host], &task.own));
      EXPECT_NEAR(task.own.total, own[host], 1e-9);
      tasks.push_back(task);
    }
    lost_ += losses->AddStep(tasks, 1, step).seconds;
    return step;
  }
  double lost() const { return lost_; }

 private:
  const size_t hosts_;
  std::mt19937 random_;
  std::normal_distribution<double> noise_;
  double lost_ = 0;
};

double Of(const HostLosses& losses, size_t host, LossReason reason) {
  const auto found = losses.losses().find(host);
  return found == losses.losses().end() ? 0 : found->second[static_cast<size_t>(reason)];
}
double All(const HostLosses& losses) {
  double sum = 0;
  for (const auto& [host, loss] : losses.losses()) {
    sum += std::accumulate(loss.begin(), loss.end(), 0.0);
  }
  return sum;
}

TEST(HostLossesTest, ASlowHostIsChargedWhatItCostForItsReason) {
  for (const LossReason reason : {LossReason::kInput, LossReason::kCompute,
                                  LossReason::kCommunication, LossReason::kCheckpoint}) {
    Job job(16);
    HostLosses losses;
    for (int i = 0; i < kSteps; ++i) job.Step({{5, reason, 0.4}}, &losses);
    const double planted = kSteps * 0.4;
    EXPECT_NEAR(Of(losses, 5, reason), planted, planted * 0.05) << LossReasonName(reason);
    EXPECT_NEAR(All(losses), planted, planted * 0.05);
    EXPECT_NEAR(All(losses), job.lost(), 1e-6) << "the shares add up to the loss";
  }
}

TEST(HostLossesTest, TwoCulpritsAreChargedEachItsOwn) {
  Job job(16);
  HostLosses losses;
  // Apart from each other, then together: of 0.6 s, the first half is shared.
  for (int i = 0; i < kSteps; ++i) job.Step({{2, LossReason::kInput, 0.4}}, &losses);
  for (int i = 0; i < kSteps; ++i) job.Step({{9, LossReason::kCompute, 0.6}}, &losses);
  EXPECT_NEAR(Of(losses, 2, LossReason::kInput), kSteps * 0.4, kSteps * 0.4 * 0.05);
  EXPECT_NEAR(Of(losses, 9, LossReason::kCompute), kSteps * 0.6, kSteps * 0.6 * 0.05);
  HostLosses together;
  for (int i = 0; i < kSteps; ++i) {
    job.Step({{2, LossReason::kInput, 0.3}, {9, LossReason::kCompute, 0.6}}, &together);
  }
  EXPECT_NEAR(Of(together, 2, LossReason::kInput), kSteps * 0.15, kSteps * 0.15 * 0.05);
  EXPECT_NEAR(Of(together, 9, LossReason::kCompute), kSteps * 0.45, kSteps * 0.45 * 0.05);
}

TEST(HostLossesTest, AHostThatIsSlowNowAndThenIsChargedForThen) {
  Job job(8);
  HostLosses losses;
  for (int i = 0; i < kSteps; ++i) {
    if (i % 3 == 0) {
      job.Step({{1, LossReason::kCompute, 0.5}}, &losses);
    } else {
      job.Step({}, &losses);
    }
  }
  const double planted = (kSteps + 2) / 3 * 0.5;
  EXPECT_NEAR(Of(losses, 1, LossReason::kCompute), planted, planted * 0.05);
  EXPECT_NEAR(All(losses), planted, planted * 0.05);
}

TEST(HostLossesTest, HealthyJobsLoseNothingToAnybody) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    for (const size_t hosts : {size_t{2}, size_t{3}, size_t{16}, size_t{100}}) {
      Job job(hosts, seed);
      HostLosses losses;
      double wall = 0;
      for (int i = 0; i < kSteps / 4; ++i) wall += job.Step({}, &losses);
      EXPECT_LT(All(losses), 0.001 * wall) << hosts << " hosts, seed " << seed;
      EXPECT_EQ(losses.judged_steps(), static_cast<uint64_t>(kSteps / 4));
    }
  }
}

TEST(HostLossesTest, ThreeSlowHostsShareByTheTimeInWhichTheyWork) {
  const auto task = [](size_t host, double compute) {
    return HostLosses::TaskStep{host, {.phases = {0, compute, 0, 0}, .total = compute}};
  };
  HostLosses losses;
  std::vector<HostLosses::TaskStep> tasks;
  for (size_t host = 0; host < 7; ++host) tasks.push_back(task(host, 1));
  tasks.push_back(task(7, 1.3));
  tasks.push_back(task(8, 1.5));
  tasks.push_back(task(9, 2.5));
  tasks.push_back(task(9, 2.0));  // Of two tasks on a host the slower one counts.
  EXPECT_DOUBLE_EQ(losses.AddStep(tasks, 2, 100).seconds, 3.0);
  EXPECT_DOUBLE_EQ(Of(losses, 7, LossReason::kCompute), 2 * 0.1);
  EXPECT_DOUBLE_EQ(Of(losses, 8, LossReason::kCompute), 2 * (0.1 + 0.1));
  EXPECT_DOUBLE_EQ(Of(losses, 9, LossReason::kCompute), 2 * (0.1 + 0.1 + 1.0));
}

TEST(HostLossesTest, NoMoreIsLostThanTheStepTook) {
  HostLosses losses;
  EXPECT_DOUBLE_EQ(losses
                       .AddStep({{0, {.phases = {0, 1, 0, 0}, .total = 1}},
                                 {1, {.phases = {0, 9, 0, 0}, .total = 9}}},
                                1, 2)
                       .seconds,
                   2);
  EXPECT_DOUBLE_EQ(All(losses), 2);
}

TEST(HostLossesTest, WithoutOtherHostsOrWithoutOwnWorkNobodyIsToBlame) {
  HostLosses losses;
  EXPECT_EQ(losses
                .AddStep({{0, {.phases = {0, 1, 0, 0}, .total = 1}},
                          {0, {.phases = {0, 9, 0, 0}, .total = 9}}},
                         1, 10)
                .seconds,
            0);
  EXPECT_THAT(losses.losses(), IsEmpty());
  const double absent = std::nan("");
  OwnWork own;
  EXPECT_FALSE(OwnWorkOf({1, 0.1, absent, absent, absent}, &own)) << "step times are all equal";
  EXPECT_FALSE(OwnWorkOf({absent, 0.1, -1, 0.2, INFINITY}, &own));
  ASSERT_TRUE(OwnWorkOf({absent, 0.1, 0.7, 0.2, absent}, &own));
  EXPECT_DOUBLE_EQ(own.total, 0.8);
  ASSERT_TRUE(OwnWorkOf({1, 0.1, absent, 0.2, absent}, &own));
  EXPECT_DOUBLE_EQ(own.total, 0.8) << "all that is no wait is its own";
  EXPECT_DOUBLE_EQ(own.phases[1], 0.7);
}

}  // namespace
}  // namespace tacho::server::goodput
