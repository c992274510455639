#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/aggregate/aggregate_fixture.h"

namespace tacho::server::aggregate {
namespace {

using storage::MetricType;
using testing::HasSubstr;
using testing::Not;

class AggregateRulesTest : public AggregateFixture {
 protected:
  // Chips 0 and 1 of two hosts, under the job of the hosts: 10, 11 and 20, 21.
  void AddChips() {
    for (uint32_t host = 1; host <= 2; ++host) {
      std::vector<storage::SeriesPtr> chips;
      std::vector<double> values;
      for (uint32_t chip = 0; chip < 2; ++chip) {
        chips.push_back(Series("hosts", "chip_power_watts", std::nullopt,
                               "h" + std::to_string(host), MetricType::kGauge,
                               {{"chip", std::to_string(chip)}}));
        values.push_back(10 * host + chip);
      }
      Row(chips, values, 100, absl::ZeroDuration(), 0, storage::kNoStep);
    }
  }
  std::string Refusal() {
    const auto rules = MakeAggregateRules(config_);
    return std::string(rules.status().message());
  }
};

TEST_F(AggregateRulesTest, ByDefaultChipsAreSeenByHostAndByTheJobsThatRunThere) {
  AddChips();
  Row({Loss(1, "train")}, {1});  // On h1.
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"hosts\",stat=\"sum\"}"), 62);
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"hosts\",host=\"h2\",stat=\"max\"}"), 21);
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"train\",stat=\"sum\"}"), 21);
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"train\",stat=\"min\"}"), 10);
}

TEST_F(AggregateRulesTest, ChipsFollowTheTasksFromHostToHost) {
  AddChips();
  const auto loss = Series("train", "loss", 0, "h1");
  Row({loss}, {1});
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"train\",stat=\"sum\"}"), 21);
  store_.RemoveLatestRows("train");
  Row({Series("train", "loss", 0, "h2")}, {1});
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"train\",stat=\"sum\"}"), 41);
}

TEST_F(AggregateRulesTest, AJobThatWasForgottenFindsItsChipsAgain) {
  AddChips();
  Row({Series("train", "loss", 0, "h1")}, {1});
  Page();
  now_ += absl::Minutes(6);
  store_.RemoveLatestRows("train");
  Page();  // The chips are silent, too.
  AddChips();
  Row({Series("train", "loss", 0, "h1")}, {1});
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"train\",stat=\"sum\"}"), 21);
}

TEST_F(AggregateRulesTest, GroupsByLabels) {
  AddChips();
  auto* rule = AddRule("chip_.*");
  rule->add_by("chip");
  rule->add_functions("avg");
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"hosts\",chip=\"1\",stat=\"avg\"}"), 16);
  EXPECT_THAT(Page(), Not(HasSubstr("stat=\"max\"")));
}

TEST_F(AggregateRulesTest, EveryRuleThatMatchesAppliesAndThenNoBuiltInOne) {
  Row({Loss(0)}, {1});
  Row({Series("j", "other", 0, "h0")}, {5});
  AddRule("loss")->add_functions("max");
  auto* renamed = AddRule("lo.*");
  renamed->add_functions("min");
  renamed->set_rename("fleet_{metric}_now");
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("\ntacho_job_loss{job=\"j\",stat=\"max\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\nfleet_loss_now{job=\"j\",stat=\"min\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("tacho_job_loss{job=\"j\",stat=\"avg\"}")));
  EXPECT_THAT(page, HasSubstr("tacho_job_other{job=\"j\",stat=\"avg\"} 5\n"));
}

TEST_F(AggregateRulesTest, AMatchIsOfWholeNames) {
  Row({Loss(0), Series("j", "loss_ema", 0, "h0")}, {1, 2});
  AddRule("loss")->set_keep(false);
  EXPECT_THAT(Page(), Not(HasSubstr("tacho_job_loss{")));
  EXPECT_THAT(Page(), HasSubstr("tacho_job_loss_ema{"));
}

TEST_F(AggregateRulesTest, WhatIsNotKeptIsSeenByNoLaterRule) {
  AddChips();
  auto* drop = AddRule("chip_.*");
  drop->set_keep(false);
  auto* label = drop->add_labels();
  label->set_name("chip");
  label->set_pattern("1");
  EXPECT_EQ(Line("tacho_job_chip_power_watts{job=\"hosts\",stat=\"sum\"}"), 30);
}

TEST_F(AggregateRulesTest, LabelsMatchHostAndTaskToo) {
  Row({Loss(0)}, {1});
  Row({Loss(1)}, {2});
  Row({Loss(12)}, {4});
  auto* rule = AddRule("loss");
  auto* label = rule->add_labels();
  label->set_name("task");
  label->set_pattern("1.*");
  EXPECT_EQ(Stat("sum"), 6);
}

TEST_F(AggregateRulesTest, WithoutBuiltInRulesOnlyTheConfiguredOnesShow) {
  config_.set_built_in_rules(false);
  Row({Loss(0)}, {1});
  EXPECT_THAT(Page(), Not(HasSubstr("tacho_job_loss")));
  EXPECT_THAT(Page(), HasSubstr("tacho_job_tasks{job=\"j\"} 1\n"));
}

TEST_F(AggregateRulesTest, GroupsPastTheirNumberAreLeftOutAndCounted) {
  auto* rule = AddRule("loss");
  rule->add_by("task");
  rule->set_max_groups(2);
  rule->add_functions("max");
  for (uint32_t task = 0; task < 5; ++task) Row({Loss(task)}, {1});
  const auto lines = Lines();
  EXPECT_EQ(lines.at("tacho_aggregate_groups{rule=\"rules[0]\"}"), 2);
  EXPECT_EQ(lines.at("tacho_aggregate_series_without_group{rule=\"rules[0]\"}"), 3);
}

TEST_F(AggregateRulesTest, LinesThatAnotherRuleMakesAreNotMadeTwice) {
  Row({Loss(0)}, {1});
  AddRule("loss")->add_functions("max");
  AddRule("lo.*")->add_functions("max");
  EXPECT_EQ(Stat("max"), 1) << "Line() fails if it is given twice";
  EXPECT_EQ(Line("tacho_aggregate_series_in_conflict{rule=\"rules[1]\"}"), 1);
}

TEST_F(AggregateRulesTest, AFamilyOfTwoTypesIsShownWithOne) {
  Row({Series("a", "x", 0, "h", MetricType::kHistogram, {{"le", "+Inf"}})}, {1});
  Row({Series("b", "x", 0, "h")}, {1});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("# TYPE tacho_job_x histogram\n"));
  EXPECT_THAT(page, Not(HasSubstr("# TYPE tacho_job_x gauge\n")));
  EXPECT_EQ(Line("tacho_aggregate_series_in_conflict{rule=\"built-in: by job\"}"), 1);
}

TEST_F(AggregateRulesTest, AMetricMayNotTakeTheNameOfAFamilyOfTheCollector) {
  Row({Series("j", "tasks", 0, "h"), Series("j", "series_left", 0, "h", MetricType::kCounter)},
      {7, 1});
  EXPECT_EQ(Line("tacho_job_tasks{job=\"j\"}"), 1);
  EXPECT_EQ(Line("tacho_job_tasks_value{job=\"j\",stat=\"max\",metric=\"tasks\"}"), 7);
  EXPECT_EQ(
      Line("tacho_job_series_left_value_total{job=\"j\",stat=\"max\",metric=\"series_left\"}"), 1);
}

TEST_F(AggregateRulesTest, ChangedRulesBeginAnew) {
  Row({Loss(0)}, {1});
  Page();
  AddRule("loss")->add_functions("p95");
  aggregator_->SetRules(*MakeAggregateRules(config_));
  EXPECT_THAT(Page(), HasSubstr("tacho_job_loss{job=\"j\",stat=\"p95\"} 1\n"));
  EXPECT_THAT(Page(), Not(HasSubstr("stat=\"p50\"")));
}

TEST_F(AggregateRulesTest, AnExpressionThatIsNoneIsRefusedWithItsKey) {
  AddRule("a");
  AddRule("b")->set_job("(");
  EXPECT_EQ(Refusal(), "metrics.rules[1].job: \"(\" is no RE2: missing ): (");
}

TEST_F(AggregateRulesTest, AFunctionThatIsNoneIsRefused) {
  for (const char* name : {"mean", "p", "p9x", "P50", "p1234567"}) {
    config_.clear_rules();
    AddRule("a")->add_functions(name);
    EXPECT_THAT(Refusal(), HasSubstr("metrics.rules[0].functions: there is no function \"" +
                                     std::string(name) + "\"; expected sum"));
  }
  config_.clear_rules();
  auto* rule = AddRule("a");
  rule->add_functions("max");
  rule->add_functions("max");
  EXPECT_EQ(Refusal(), "metrics.rules[0].functions: max is given twice");
}

TEST_F(AggregateRulesTest, ANameThatIsNotAllowedOrTakenIsRefused) {
  AddRule("a")->set_rename("9{metric}");
  EXPECT_THAT(Refusal(),
              HasSubstr("metrics.rules[0].rename: \"9{metric}\" is not a valid metric name"));
  config_.mutable_rules(0)->set_rename("tacho_ready");
  EXPECT_EQ(Refusal(),
            "metrics.rules[0].rename: \"tacho_ready\" is one of the collector's own families");
  config_.mutable_rules(0)->set_rename("x");
  EXPECT_EQ(Refusal(), "");
  config_.mutable_rules(0)->set_metric("a|b");
  EXPECT_THAT(Refusal(), HasSubstr("\"x\" would name every metric that \"a|b\" matches"));
  config_.mutable_rules(0)->set_metric("a");
  AddRule("b")->set_rename("x");
  EXPECT_EQ(
      Refusal(),
      "metrics.rules[1].rename: \"x\" is the name of \"a\" by rules[0]; expected another one");
}

TEST_F(AggregateRulesTest, TwoRulesOfTheSameLinesAreRefused) {
  AddRule("a")->add_functions("min");
  AddRule("a")->add_functions("max");
  EXPECT_THAT(Refusal(), HasSubstr("metrics.rules[1].rename: makes the same lines as rules[0]"));
  config_.mutable_rules(1)->add_by("host");
  EXPECT_EQ(Refusal(), "");
}

TEST_F(AggregateRulesTest, AGroupingThatCannotBeIsRefused) {
  AddRule("a")->add_by("job");
  EXPECT_THAT(Refusal(), HasSubstr("metrics.rules[0].by: \"job\" is a label that aggregates have"));
  config_.mutable_rules(0)->set_by(0, "a b");
  EXPECT_EQ(Refusal(), "metrics.rules[0].by: \"a b\" is not a valid label name");
}

TEST_F(AggregateRulesTest, TheDescriptionSaysWhatEachRuleMakes) {
  auto* rule = AddRule("chip_.*");
  rule->add_by("host");
  rule->add_functions("max");
  AddRule("debug_.*")->set_keep(false);
  const std::string text = DescribeAggregateRules(**MakeAggregateRules(config_));
  EXPECT_THAT(text, HasSubstr("rules[0]: job any, metric \"chip_.*\" -> "
                              "tacho_job_{metric}{job,host,stat=max}, for counters stat=max\n"
                              "rules[1]: job any, metric \"debug_.*\": left out\n"
                              "built-in: by job: "));
}

}  // namespace
}  // namespace tacho::server::aggregate
