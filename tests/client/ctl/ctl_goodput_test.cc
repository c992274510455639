// tachoctl goodput.
#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CtlGoodputTest : public CtlReadingTest {
 protected:
  // Seconds of the buckets in the order of the enum; missing ones are 0.
  static void Fill(int64_t begin_s, const std::vector<double>& seconds, v1::Goodput* goodput) {
    int64_t wall = 0;
    for (int i = 1; i <= v1::GoodputBucket_MAX; ++i) {
      v1::BucketTime* bucket = goodput->add_buckets();
      bucket->set_bucket(static_cast<v1::GoodputBucket>(i));
      const size_t index = static_cast<size_t>(i) - 1;
      bucket->set_ns(index < seconds.size() ? static_cast<int64_t>(seconds[index] * 1e9) : 0);
      wall += bucket->ns();
    }
    goodput->set_begin_unix_ns(kStart + begin_s * kSecond);
    goodput->set_end_unix_ns(goodput->begin_unix_ns() + wall);
    goodput->set_wall_ns(wall);
    goodput->set_goodput_ratio(static_cast<double>(goodput->buckets(0).ns()) /
                               static_cast<double>(wall));
  }

  void FillAnswer() {
    v1::GoodputResponse& answer = fake_.goodput;
    answer.set_job("bert");
    Fill(0, {7200, 120, 240, 60, 360.5, 180, 90, 600, 300, 900, 30}, answer.mutable_total());
    Fill(0, {3000, 60, 120, 0, 160.5, 80, 40, 600, 300}, answer.add_attempts()->mutable_goodput());
    auto* second = answer.add_attempts();
    second->set_attempt(1);
    Fill(5400, {4200, 60, 120, 60, 200, 100, 50, 0, 0, 0, 30}, second->mutable_goodput());
    second->mutable_goodput()->set_productive_steps(12345);
    v1::StepFigures& steps = *answer.mutable_steps();
    steps.set_sampled(1000);
    steps.set_step_time_median_seconds(0.34);
    steps.set_step_time_p90_seconds(0.36);
    steps.set_step_time_p99_seconds(0.52);
    steps.set_step_time_mean_seconds(0.345);
    steps.set_step_time_mad_seconds(0.004);
    steps.set_step_time_ideal_seconds(0.339);
    steps.set_mfu_ratio(0.4321);
    steps.set_device_peak_flops(459e12);
    steps.set_device_peak_source("TPU v5p");
    steps.set_tokens_per_second(1.5e6);
    steps.set_last_step(21000);
    steps.set_planned_steps(100000);
    steps.set_progress_ratio(0.21);
    steps.set_remaining_seconds(27300);
    answer.set_attempt(1);
    answer.set_step_metric("step_time_seconds");
  }
};

TEST_F(CtlGoodputTest, EveryBucketHasABarWithin80Columns) {
  FillAnswer();
  env_.width = 80;
  env_.out_is_terminal = true;
  ASSERT_EQ(Run({"goodput", "bert"}), kOk) << Err();
  EXPECT_EQ(fake_.goodput_request.job(), "bert");
  EXPECT_LE(Width(), 80u);
  ExpectGolden("goodput_80.txt", Out());
}

TEST_F(CtlGoodputTest, WhatRoundsToNothingHasNoBarAndALittleHasAThinOne) {
  fake_.goodput.set_job("bert");
  Fill(0, {99'920, 30, 50}, fake_.goodput.mutable_total());  // Seconds of 100,000.
  ASSERT_EQ(Run({"goodput", "bert"}), kOk);
  EXPECT_THAT(Out(), AllOf(ContainsRegex("initializing +30s +0.0\n"), HasSubstr(" 0.1  ▏\n")));
  env_.unicode = false;
  ASSERT_EQ(Run({"goodput", "bert"}), kOk);
  EXPECT_THAT(Out(), AllOf(ContainsRegex("initializing +30s +0.0\n"), HasSubstr(" 0.1  |\n")));
}

TEST_F(CtlGoodputTest, BarsAreAsciiWhereTheyMustBe) {
  FillAnswer();
  env_.unicode = false;
  ASSERT_EQ(Run({"goodput", "bert"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("####"));
  EXPECT_THAT(Out(), Not(HasSubstr("█")));
}

TEST_F(CtlGoodputTest, JsonAndCsvHaveEverySecond) {
  FillAnswer();
  ASSERT_EQ(Run({"goodput", "bert", "-o", "json"}), kOk);
  ExpectGolden("goodput.json", Out());
  ASSERT_EQ(Run({"goodput", "bert", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("attempt,bucket,seconds,percent\r\n,productive_step,7200,"));
  EXPECT_THAT(Out(), HasSubstr("\n1,other,30,"));
}

TEST_F(CtlGoodputTest, SpansAreListedInTheOrderOfTime) {
  FillAnswer();
  const auto add = [&](v1::GoodputBucket bucket, int64_t begin_s, int64_t end_s) {
    v1::LedgerSpan* span = fake_.goodput.add_spans();
    span->set_bucket(bucket);
    span->set_begin_unix_ns(kStart + begin_s * kSecond);
    span->set_end_unix_ns(kStart + end_s * kSecond);
    span->set_attempt(1);
    return span;
  };
  add(v1::GOODPUT_BUCKET_DOWN, 0, 60);
  v1::LedgerSpan* wasted = add(v1::GOODPUT_BUCKET_WASTED, 60, 3660);
  wasted->set_first_step(51);
  wasted->set_last_step(99);
  fake_.goodput.set_spans_joined(1234);

  ASSERT_EQ(Run({"goodput", "bert", "--spans", "2"}), kOk) << Err();
  EXPECT_EQ(fake_.goodput_request.max_spans(), 2u);
  EXPECT_THAT(Out(), ContainsRegex("2026-01-31 12:00:00 +1m  down +1 +-\n"));
  EXPECT_THAT(Out(), ContainsRegex("2026-01-31 12:01:00 +1h  wasted +1 +51..99\n"));
  EXPECT_THAT(Out(),
              HasSubstr("1,234 shorter spans are part of a neighbour: a larger --spans shows"));
  ASSERT_EQ(Run({"goodput", "bert", "--spans", "10000"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("1,234 shorter spans are part of a neighbour.\n"))
      << "there is no larger --spans";
  fake_.goodput.set_spans_joined(1);
  ASSERT_EQ(Run({"goodput", "bert", "--spans", "2"}), kOk) << Err();
  EXPECT_THAT(Out(), HasSubstr("1 shorter span is part of a neighbour"));
  fake_.goodput.set_spans_joined(1234);

  ASSERT_EQ(Run({"goodput", "bert", "--spans", "2", "-o", "csv"}), kOk);
  EXPECT_THAT(Out(), HasSubstr(",3600,wasted,1,51,99"));
  EXPECT_THAT(Out(), Not(HasSubstr("productive_step")));

  ASSERT_EQ(Run({"goodput", "bert", "--spans", "2", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"spans_joined\": 1234"), HasSubstr("\"last_step\": 99"),
                           HasSubstr("\"first_step\": null")));

  ASSERT_EQ(Run({"goodput", "bert"}), kOk);
  EXPECT_EQ(fake_.goodput_request.max_spans(), 0u);
  EXPECT_EQ(Run({"goodput", "bert", "--spans", "10001"}), kUsage);
  EXPECT_THAT(Err(), HasSubstr("--spans"));
}

TEST_F(CtlGoodputTest, NamesTheHostsThatTheOthersWaitedFor) {
  FillAnswer();
  v1::HostLosses& losses = *fake_.goodput.mutable_losses();
  losses.set_judged_steps(1000);
  for (int i = 0; i < 12; ++i) {
    v1::HostLoss& host = *losses.add_hosts();
    host.set_host("host-" + std::to_string(i));
    v1::ReasonLoss& reason = *host.add_reasons();
    reason.set_reason(i == 0 ? v1::LOSS_REASON_INPUT : v1::LOSS_REASON_COMPUTE);
    reason.set_ns(i == 0 ? 600 * kSecond : 12 * kSecond);
    host.set_lost_ns(reason.ns());
    losses.set_lost_ns(losses.lost_ns() + reason.ns());
  }
  ASSERT_EQ(Run({"goodput", "bert"}), kOk) << Err();
  EXPECT_THAT(Out(), AllOf(HasSubstr("Tasks waited 12m 12s (7.3 %) for slow hosts:\n"),
                           ContainsRegex("host-0 +10m +6.0 +input 10m\n"),
                           ContainsRegex("host-9 +12s +0.1 +compute 12s\n"),
                           Not(HasSubstr("host-10")), HasSubstr("2 more hosts in -o json.\n")));
  ASSERT_EQ(Run({"goodput", "bert", "-o", "json"}), kOk);
  EXPECT_THAT(Out(), AllOf(HasSubstr("\"judged_steps\": 1000"), HasSubstr("\"host\": \"host-11\""),
                           HasSubstr("\"input\": 600")));
  losses.set_lost_ns(kSecond);
  ASSERT_EQ(Run({"goodput", "bert"}), kOk) << Err();
  EXPECT_THAT(Out(), Not(HasSubstr("slow hosts"))) << "next to nothing";
}

TEST_F(CtlGoodputTest, AJobWithoutStepsSaysSo) {
  fake_.goodput.set_job("bert");
  Fill(0, {0, 60}, fake_.goodput.mutable_total());
  ASSERT_EQ(Run({"goodput", "bert"}), kOk);
  EXPECT_THAT(Out(), HasSubstr("No step has been recorded"));
  EXPECT_THAT(Out(), Not(HasSubstr("step time")));
}

TEST_F(CtlGoodputTest, NeedsAJob) { EXPECT_EQ(Run({"goodput"}), kUsage); }

}  // namespace
}  // namespace tacho::ctl
