// tachoctl cost.
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CtlCostTest : public CtlReadingTest {
 protected:
  // Two hours on four chips; energy is known for three quarters of them.
  void FillUse() {
    v1::CostResponse& answer = fake_.cost;
    answer.set_job("bert");
    answer.set_begin_unix_ns(kStart);
    answer.set_end_unix_ns(kStart + 7200 * kSecond);
    v1::BucketCost* steps = answer.add_buckets();
    steps->set_bucket(v1::GOODPUT_BUCKET_PRODUCTIVE_STEP);
    steps->set_ns(7200 * kSecond);
    steps->set_chip_seconds(4 * 7200);
    steps->set_joules(7.2e6);
    v1::AttemptCost* attempt = answer.add_attempts();
    attempt->set_chips(4);
    attempt->set_kind("NVIDIA H100");
    attempt->set_capacity_type("spot");
    answer.set_chip_seconds(4 * 7200);
    v1::JobEnergy* energy = answer.mutable_energy();
    energy->set_joules(7.2e6);
    energy->set_covered_seconds(3 * 7200);
    energy->set_due_seconds(4 * 7200);
    energy->set_gaps(2);
    energy->set_chips(4);
    answer.set_productive_steps(100);
    answer.set_no_chip_cost("there is no price list: set cost.chips");
    answer.set_no_energy_cost("energy has no price: set cost.energy.per_kwh");
  }
  void FillMoney() {
    v1::CostResponse& answer = fake_.cost;
    answer.set_currency("EUR");
    answer.mutable_buckets(0)->set_chip_cost(16);
    answer.mutable_buckets(0)->set_energy_cost(0.5);
    answer.mutable_attempts(0)->set_price_per_chip_hour(2);
    answer.set_chip_cost(16);
    answer.set_energy_cost(0.5);
    answer.set_cost(16.5);
    answer.set_cost_per_step(0.165);
    answer.set_cost_per_million_tokens(0.25);
    answer.mutable_accuracy()->set_metric("eval_accuracy");
    answer.mutable_accuracy()->set_first(0.5);
    answer.mutable_accuracy()->set_best(0.75);
    answer.set_cost_per_accuracy_point(0.66);
    answer.clear_no_chip_cost();
    answer.clear_no_energy_cost();
  }
};

TEST_F(CtlCostTest, WithoutPricesItShowsEnergyAndWhatIsMissing) {
  FillUse();
  ASSERT_EQ(Run({"cost", "bert"}), kOk) << Err();
  EXPECT_EQ(fake_.cost_request.job(), "bert");
  EXPECT_THAT(Out(), AllOf(HasSubstr("bert: 2 kWh, 2h of wall time"),
                           HasSubstr("4 NVIDIA H100, spot\n"), HasSubstr("set cost.chips"),
                           HasSubstr("2 kWh of 4 chips, power known for 75.0 % of their time, "
                                     "2 gaps"),
                           HasSubstr("set cost.energy.per_kwh"), Not(HasSubstr("EUR"))));
}

TEST_F(CtlCostTest, WithPricesItShowsMoneyByBucketAndByWhatItBought) {
  FillUse();
  FillMoney();
  ASSERT_EQ(Run({"cost", "bert"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("bert: 16.5 EUR, 2 kWh, 2h of wall time"),
                           HasSubstr("4 NVIDIA H100, spot, at 2 EUR an hour"),
                           HasSubstr("0.165 EUR"), HasSubstr("0.25 EUR"),
                           HasSubstr("0.66 EUR: eval_accuracy rose from 0.5 to 0.75")));
}

TEST_F(CtlCostTest, ChipsWithoutAPriceAreNamedBesideTheCost) {
  FillUse();
  FillMoney();
  fake_.cost.set_chip_seconds_not_priced(7200);
  fake_.cost.set_no_chip_cost("cost.chips has no price for NVIDIA A100");
  ASSERT_EQ(Run({"cost", "bert"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("2 chip hours are not in it: cost.chips has no price for NVIDIA "
                               "A100"));
}

TEST_F(CtlCostTest, JsonHasNullWhereNothingIsKnown) {
  FillUse();
  ASSERT_EQ(Run({"cost", "bert", "-o", "json"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"cost\": null"), HasSubstr("\"accuracy\": null"),
                           HasSubstr("\"kilowatt_hours\": 2")));
  FillMoney();
  ASSERT_EQ(Run({"cost", "bert", "-o", "json"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"cost\": 16.5"), HasSubstr("\"best\": 0.75")));
}

TEST_F(CtlCostTest, CsvHasALineForEachBucket) {
  FillUse();
  FillMoney();
  ASSERT_EQ(Run({"cost", "bert", "-o", "csv"}), kOk) << Err();
  EXPECT_EQ(Out(),
            "bucket,seconds,chip_seconds,joules,chip_cost,energy_cost,currency\r\n"
            "productive_step,7200,28800,7200000,16,0.5,EUR\r\n");
}

}  // namespace
}  // namespace tacho::ctl
