// tachoctl forecast.
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CtlForecastTest : public CtlReadingTest {
 protected:
  void FillAnswer() {
    v1::ForecastResponse& answer = fake_.forecast;
    answer.set_job("bert");
    answer.set_band_share(0.8);
    answer.set_newest_step(500);
    answer.set_last_step(1000);
    answer.mutable_end()->set_likely_unix_ns(kStart + 7200 * kSecond);
    answer.mutable_end()->set_earliest_unix_ns(kStart + 7000 * kSecond);
    answer.mutable_end()->set_latest_unix_ns(kStart + 7500 * kSecond);
    v1::ValueForecast* value = answer.mutable_value();
    value->set_metric("loss");
    value->set_task(0);
    value->set_likely(2.25);
    value->set_low(2.125);
    value->set_high(2.5);
    value->set_now(2.75);
  }
};

TEST_F(CtlForecastTest, ShowsBothWithTheirBands) {
  FillAnswer();
  ASSERT_EQ(Run({"forecast", "bert", "--metric", "loss", "--last-step", "1000"}), kOk) << Err();
  EXPECT_EQ(fake_.forecast_request.job(), "bert");
  EXPECT_EQ(fake_.forecast_request.metric(), "loss");
  EXPECT_EQ(fake_.forecast_request.last_step(), 1000);
  EXPECT_THAT(
      Out(), AllOf(HasSubstr("bert: step 500 of 1000"), HasSubstr("loss of task 0: 2.25, now 2.75"),
                   HasSubstr("80.0 % probability between 2.125 and 2.5")));
}

TEST_F(CtlForecastTest, SaysWhatIsMissing) {
  fake_.forecast.set_job("bert");
  fake_.forecast.set_no_end("nobody said how long");
  fake_.forecast.set_no_value("there are 3 values");
  ASSERT_EQ(Run({"forecast", "bert"}), kOk) << Err();
  EXPECT_FALSE(fake_.forecast_request.has_last_step());
  EXPECT_THAT(Out(), AllOf(HasSubstr("end    not known: nobody said how long"),
                           HasSubstr("value  not known: there are 3 values")));
  ASSERT_EQ(Run({"forecast", "bert", "-o", "json"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"end\": null"), HasSubstr("\"no_end\": \"nobody said")));
}

TEST_F(CtlForecastTest, JsonAndCsvHaveAllNumbers) {
  FillAnswer();
  ASSERT_EQ(Run({"forecast", "bert", "-o", "json"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"likely\": 2.25"), HasSubstr("\"low\": 2.125"),
                           HasSubstr("\"last_step\": 1000"), HasSubstr("\"no_end\": null")));
  ASSERT_EQ(Run({"forecast", "bert", "-o", "csv"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("loss,2.25,2.125,2.5,2.75"));
}

TEST_F(CtlForecastTest, AWrongStepIsRefused) {
  EXPECT_EQ(Run({"forecast", "bert", "--last-step", "-3"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("last-step"));
}

}  // namespace
}  // namespace tacho::ctl
