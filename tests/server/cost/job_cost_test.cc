// Energy and cost of jobs in a real store.
#include "server/cost/job_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "server/cost/cost_board.h"
#include "server/query/lists/cost_query.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::cost {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = "train";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

int64_t At(double seconds) {
  return query::kTestBase + static_cast<int64_t>(seconds * static_cast<double>(query::kTestSecond));
}

config::v1::Collector Config(double h100, double per_kwh) {
  config::v1::Collector config;
  config::v1::Cost* cost = config.mutable_cost();
  cost->set_currency("USD");
  cost->set_hosts_job("hosts");
  cost->add_host_power("host_power_watts");
  cost->set_host_power_has_chips(true);
  cost->mutable_energy()->set_per_kwh(per_kwh);
  cost->mutable_energy()->set_overhead_factor(1);
  if (h100 > 0) {
    auto* chip = cost->add_chips();
    chip->set_kind("H100");
    chip->set_capacity_type("any");
    chip->set_per_hour(h100);
  }
  return config;
}

class JobCostTest : public query::QueryStoreFixture {
 protected:
  void AppendAttributes(std::map<std::string, std::string> values, uint32_t attempt = 0) {
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendAttributes({}, {kJob, attempt, std::move(values)}, std::move(done));
    });
  }

  // Step 0 at `from`, and one each second; the counter of tokens grows by 1,000 a step.
  void AppendSteps(uint32_t task, double from, int64_t steps, uint32_t attempt = 0,
                   int64_t first = 0) {
    const auto layout = Register(kJob, task, attempt, {"step_time_seconds", "tokens"});
    std::vector<int64_t> times, numbers;
    std::vector<double> values;
    for (int64_t i = 0; i < steps; ++i) {
      times.push_back(At(from + static_cast<double>(i)));
      numbers.push_back(first + i);
      values.insert(values.end(), {1.0, 1000.0 * static_cast<double>(first + i + 1)});
    }
    Append(layout, times, numbers, values);
  }

  // A series without steps: (seconds, value).
  void AppendSamples(const std::string& job, const std::string& host, const std::string& metric,
                     storage::Labels labels,
                     const std::vector<std::pair<double, double>>& samples) {
    storage::LayoutDefinition definition;
    definition.source = {job, std::nullopt, 0, host};
    definition.series.push_back(
        {{metric, storage::MetricType::kGauge, "W", "Help."}, std::move(labels)});
    const auto registered = store_->RegisterLayout(definition);
    ASSERT_TRUE(registered.ok()) << registered.status();
    std::vector<int64_t> times;
    std::vector<double> values;
    for (const auto& [seconds, value] : samples) {
      times.push_back(At(seconds));
      values.push_back(value);
    }
    AppendDurably([&](storage::AppendDone done) {
      store_->AppendRows({}, registered->layout, {times, {}, values}, std::move(done));
    });
  }
  // Every second from `from` to `to`.
  static std::vector<std::pair<double, double>> Each(double watts, int from, int to) {
    std::vector<std::pair<double, double>> samples;
    for (int at = from; at <= to; ++at) samples.emplace_back(at, watts);
    return samples;
  }

  JobCost Cost(const config::v1::Collector& config, double now) {
    const auto settings = CostSettingsOf(config);
    EXPECT_TRUE(settings.ok()) << settings.status();
    auto cost =
        CostOf(*store_, kJob, **settings, absl::FromUnixNanos(At(now)), query::QueryControl());
    EXPECT_TRUE(cost.ok()) << cost.status();
    return cost.ok() ? *std::move(cost) : JobCost();
  }
  static double Joules(const JobCost& cost) {
    return cost.inputs.energy.has_value() ? cost.inputs.energy->total().total() : -1;
  }
  static double Covered(const JobCost& cost) {
    const Energy energy = cost.inputs.energy.value_or(JobEnergy()).total();
    return energy.covered_ns / energy.due_ns;
  }
};

TEST_F(JobCostTest, ChipsOfTheJobsHostsCountWhileItRuns) {
  AppendSteps(0, 100, 101);  // From 100 s to 200 s on host-0.
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "1"}}, Each(200, 0, 400));
  AppendSamples("hosts", "host-9", "chip_power_watts", {{"chip", "0"}}, Each(900, 0, 400));
  AppendAttributes({{"device_count", "2"}, {"device_kind", "NVIDIA H100 80GB HBM3"}});
  const JobCost cost = Cost(Config(3.6, 0.36), 201);
  EXPECT_NEAR(Joules(cost), 500 * 100, 1e-6);
  EXPECT_NEAR(Covered(cost), 1, 1e-9);
  EXPECT_EQ(cost.inputs.energy->chips_counted, 2u);
  EXPECT_EQ(cost.inputs.energy->hosts_counted, 0u);
  EXPECT_NEAR(cost.chip_cost.value_or(-1), 0.2, 1e-9);      // 100 s x 2 x 3.6 / 3,600
  EXPECT_NEAR(cost.energy_cost.value_or(-1), 0.005, 1e-9);  // 50,000 J x 0.36 / 3.6e6
  EXPECT_NEAR(cost.cost_per_step.value_or(-1), 0.00205, 1e-9);
  EXPECT_NEAR(cost.tokens.value_or(-1), 100'000, 1e-6);
  EXPECT_NEAR(cost.cost_per_million_tokens.value_or(-1), 2.05, 1e-6);
}

TEST_F(JobCostTest, AGapHasNoEnergyAndIsTold) {
  AppendSteps(0, 100, 101);
  auto samples = Each(300, 0, 150);
  samples.emplace_back(151, kNan);
  samples.emplace_back(152, -7);
  for (const auto& one : Each(300, 180, 400)) samples.push_back(one);
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, samples);
  const JobCost cost = Cost(Config(0, 0), 201);
  EXPECT_NEAR(Joules(cost), 300 * 70, 1e-6);
  EXPECT_NEAR(Covered(cost), 0.7, 1e-9);
  EXPECT_EQ(cost.inputs.energy->total().gaps, 1u);
  EXPECT_EQ(cost.inputs.energy->total().refused, 2u);
}

TEST_F(JobCostTest, OnlyChipsThatTheJobHoldsCountIfThatIsKnown) {
  AppendSteps(0, 100, 101);
  for (const char* chip : {"0", "1"}) {
    AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", chip}}, Each(300, 0, 400));
  }
  AppendSamples("hosts", "host-0", "chip_held_info", {{"chip", "1"}, {"training_job", kJob}},
                Each(1, 120, 180));
  AppendSamples("hosts", "host-0", "chip_held_info", {{"chip", "0"}, {"training_job", "other"}},
                Each(1, 0, 400));
  AppendSamples("hosts", "host-0", "chip_info", {{"chip", "0"}, {"kind", "NVIDIA H100"}},
                Each(1, 0, 10));
  AppendSamples("hosts", "host-0", "chip_info", {{"chip", "1"}, {"kind", "NVIDIA H100"}},
                Each(1, 0, 10));
  const JobCost cost = Cost(Config(3.6, 0), 201);
  EXPECT_NEAR(Joules(cost), 300 * 60, 1e-6);
  EXPECT_EQ(cost.inputs.attempts[0].chips, 1);
  EXPECT_EQ(cost.inputs.attempts[0].kind, "NVIDIA H100");
  EXPECT_NEAR(cost.chip_cost.value_or(-1), 0.1, 1e-9);
}

TEST_F(JobCostTest, AHostsPowerContainsThatOfItsChipsUnlessTheConfigurationSaysOtherwise) {
  AppendSteps(0, 100, 101);
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  AppendSamples("hosts", "host-0", "host_power_watts", {}, Each(1000, 0, 400));
  config::v1::Collector config = Config(0, 0);
  JobCost cost = Cost(config, 201);
  EXPECT_NEAR(Joules(cost), 1000 * 100, 1e-6);
  EXPECT_EQ(cost.inputs.energy->chips_counted, 0u);
  EXPECT_EQ(cost.inputs.energy->hosts_counted, 1u);
  config.mutable_cost()->set_host_power_has_chips(false);
  EXPECT_NEAR(Joules(Cost(config, 201)), 1300 * 100, 1e-6);
}

TEST_F(JobCostTest, ChipsCountWhereTheirPowerIsKnownForLonger) {
  AppendSteps(0, 100, 101);
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  AppendSamples("hosts", "host-0", "host_power_watts", {}, Each(1000, 0, 150));
  EXPECT_NEAR(Joules(Cost(Config(0, 0), 201)), 300 * 100, 1e-6);
}

TEST_F(JobCostTest, OnePowerUnderTwoNamesCountsOnce) {
  AppendSteps(0, 100, 101);
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  AppendSamples("hosts", "host-0", "DCGM_FI_DEV_POWER_USAGE", {{"gpu", "0"}}, Each(301, 0, 400));
  EXPECT_NEAR(Joules(Cost(Config(0, 0), 201)), 300 * 100, 1e-6);
}

TEST_F(JobCostTest, PowerThatTheJobItselfRecordsComesFirst) {
  AppendSteps(0, 100, 101);
  AppendSamples(kJob, "host-0", "chip_power_watts", {{"chip", "0"}}, Each(250, 100, 200));
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  EXPECT_NEAR(Joules(Cost(Config(0, 0), 201)), 250 * 100, 1e-6);
}

TEST_F(JobCostTest, EnergyOfTimeBetweenAttemptsIsNotTheJobs) {
  AppendSteps(0, 100, 101);         // 100 s to 200 s.
  AppendSteps(0, 300, 51, 1, 100);  // 300 s to 350 s.
  AppendSamples("hosts", "host-0", "chip_power_watts", {{"chip", "0"}}, Each(300, 0, 400));
  const JobCost cost = Cost(Config(0, 0), 351);
  EXPECT_NEAR(Joules(cost), 300 * 150, 1e-6);
  EXPECT_EQ(cost.inputs.energy->total().joules[static_cast<size_t>(goodput::GoodputBucket::kDown)],
            0);
}

TEST_F(JobCostTest, OfAJobWithTooManySamplesSomeHostsStandForAll) {
  for (uint32_t task = 0; task < 6; ++task) {
    AppendSteps(task, 100, 101);
    AppendSamples("hosts", "host-" + std::to_string(task), "chip_power_watts", {{"chip", "0"}},
                  Each(300, 0, 400));
  }
  const conditions::SignalNames names;
  const auto goodput = goodput::GoodputOf(*store_, kJob, names, absl::FromUnixNanos(At(201)),
                                          query::QueryControl(), 1000);
  ASSERT_TRUE(goodput.ok());
  const auto hosts = HostWindowsOf(*store_, *goodput);
  ASSERT_TRUE(hosts.ok());
  const auto energy = EnergyOf(*store_, *goodput, *hosts, names, {}, query::QueryControl(), 1000);
  ASSERT_TRUE(energy.ok() && energy->has_value());
  EXPECT_EQ((*energy)->read_every, 3u);
  EXPECT_NEAR((*energy)->total().total(), 6 * 300 * 100, 1e-6);
  EXPECT_EQ((*energy)->chips_counted, 6u);
}

TEST_F(JobCostTest, AccuracyGainsItsPointsFromTheFirstValueToTheBest) {
  AppendSteps(0, 100, 101);
  AppendAttributes({{"device_count", "2"}, {"device_kind", "H100"}});
  const auto layout = Register(kJob, 0, 0, {"eval_accuracy", "train_accuracy"});
  Append(layout, {At(120), At(150), At(180)}, {20, 50, 80}, {0.2, 0.9, 0.6, 0.95, 0.5, 0.99});
  const JobCost cost = Cost(Config(3.6, 0), 201);
  ASSERT_TRUE(cost.inputs.accuracy.has_value());
  EXPECT_EQ(cost.inputs.accuracy->metric, "eval_accuracy");
  EXPECT_NEAR(cost.inputs.accuracy->points(), 40, 1e-9);
  EXPECT_NEAR(cost.cost_per_accuracy_point.value_or(-1), 0.2 / 40, 1e-9);
}

TEST_F(JobCostTest, AttributesThatALaterAttemptLeavesOutStay) {
  AppendSteps(0, 100, 101);
  AppendSteps(0, 300, 51, 1, 100);
  AppendAttributes({{"device_count", "4"}, {"device_kind", "H100"}, {"capacity_type", "Spot"}});
  const JobCost cost = Cost(Config(3.6, 0), 351);
  ASSERT_EQ(cost.inputs.attempts.size(), 2u);
  EXPECT_EQ(cost.inputs.attempts[1].chips, 4);
  EXPECT_EQ(cost.inputs.attempts[1].capacity_type, "spot");
  EXPECT_NEAR(cost.chip_seconds.value_or(-1), 150 * 4, 1e-6) << "not the 100 s down";
}

TEST_F(JobCostTest, WithoutPowerAndPricesTheAnswerSaysWhatIsMissing) {
  AppendSteps(0, 100, 101);
  const auto settings = CostSettingsOf(Config(0, 0));
  v1::CostRequest request;
  request.set_job(kJob);
  v1::CostResponse response;
  ASSERT_TRUE(query::GetCost(*store_, request, **settings, absl::FromUnixNanos(At(201)),
                             query::QueryControl(), &response)
                  .ok());
  EXPECT_FALSE(response.has_energy());
  EXPECT_FALSE(response.has_cost());
  EXPECT_EQ(response.currency(), "");
  EXPECT_THAT(response.no_energy_cost(), HasSubstr("no power"));
  EXPECT_THAT(response.no_chip_cost(), HasSubstr("device_count"));
  EXPECT_EQ(response.buckets_size(), static_cast<int>(goodput::kGoodputBuckets));
  request.set_job("trian");
  EXPECT_THAT(std::string(query::GetCost(*store_, request, **settings, absl::UnixEpoch(),
                                         query::QueryControl(), &response)
                              .message()),
              HasSubstr("train"));
  request.clear_job();
  EXPECT_TRUE(absl::IsInvalidArgument(query::GetCost(
      *store_, request, **settings, absl::UnixEpoch(), query::QueryControl(), &response)));
}

TEST_F(JobCostTest, TheBoardShowsWhatIsKnownAndTakesNewPrices) {
  AppendSteps(0, 100, 101);
  AppendAttributes({{"device_count", "2"}, {"device_kind", "H100"}});
  CostBoardOptions options;
  options.store = store_.get();
  absl::Time now = absl::FromUnixNanos(At(201));
  options.now = [&now] { return now; };
  options.settings = *CostSettingsOf(Config(0, 0));
  options.background = false;
  CostBoard board(options);
  board.Refresh();
  EXPECT_EQ(board.Newest().size(), 0u) << "neither power nor prices";
  const auto apply = board.Prepare(Config(3.6, 0));
  ASSERT_TRUE(apply.ok());
  (*apply)();
  board.Refresh();
  ASSERT_EQ(board.Newest().size(), 1u);
  EXPECT_NEAR(board.Newest()[0]->cost.value_or(-1), 0.2, 1e-9);
  double of_steps = -1;
  for (const auto& family : CostFamilies(board.Newest(), board.Stats())) {
    if (family.name != "tacho_job_cost") continue;
    for (const auto& line : family.metric) {
      if (line.label[2].value == "productive_step") of_steps = line.gauge.value;
    }
  }
  EXPECT_NEAR(of_steps, 0.2, 1e-9);
  config::v1::Collector wrong = Config(3.6, 0);
  wrong.mutable_cost()->set_currency("dollar");
  EXPECT_FALSE(board.Prepare(wrong).ok());
  now += absl::Hours(2);
  board.Refresh();
  EXPECT_EQ(board.Newest().size(), 0u) << "silent for more than an hour";
}

}  // namespace
}  // namespace tacho::server::cost
